"""What ranks and the toolkit write: framed at the source, assembled to lines, shown, with secrets hidden."""
