"""The processes of the script on one host: the server that starts them, and the wrapper that each runs under."""
