"""What commands show for people and for other programs."""
