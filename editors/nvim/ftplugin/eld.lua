-- Specs are Emacs Lisp data.
vim.bo.commentstring = ";; %s"
vim.bo.comments = "n:;"
vim.bo.lisp = true
vim.bo.expandtab = true
vim.bo.syntax = "lisp"
