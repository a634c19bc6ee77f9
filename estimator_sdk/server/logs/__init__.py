"""The logs of a job in pieces: pages of lines, searches and downloads, none of which reads a whole history at once."""
