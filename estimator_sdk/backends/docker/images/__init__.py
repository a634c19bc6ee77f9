"""The training images: their names, their recipe, and how they are built."""
