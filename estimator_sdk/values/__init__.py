"""Values that all rooms use: names, URIs, folders of the user, checks of types."""
