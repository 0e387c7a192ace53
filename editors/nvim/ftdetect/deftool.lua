vim.filetype.add({ extension = { eld = "eld" } })
