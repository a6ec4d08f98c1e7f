"""Commands for workspaces, the folders that store everything that was taught."""
