"""Opens, closes, defines, alters and inquires objects."""
