"""Our training images: which there are, and how one is built. The recipe is the `Dockerfile` of the toolkit."""
