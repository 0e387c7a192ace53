-- Scripts have the server too, if they belong to a project.
return {
  cmd = { "deftool", "lsp" },
  filetypes = { "eld", "lua", "luau" },
  root_markers = { "specs" },
  workspace_required = true,
}
