"""Commands for workspaces: folders that keep all that was taught, and a model that follows."""
