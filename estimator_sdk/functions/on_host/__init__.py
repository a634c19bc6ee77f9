"""What travels with a function to each host, and runs there: the standard library and cloudpickle, Python >= 3.9.

The SDK puts this folder into the code as it is, so it imports nothing of the SDK, and no image needs to know it.
"""
