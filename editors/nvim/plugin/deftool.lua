-- The language server, and `:Deftool`, which runs the command in a terminal.

vim.lsp.enable("deftool")

--- Runs `deftool` in a new terminal window.
--- @param arguments string[]
--- @param folder string? the project; default: that of the current file
local function run(arguments, folder)
  folder = folder or vim.fs.root(0, "specs") or vim.fn.getcwd()
  vim.cmd("botright 12new")
  vim.fn.jobstart(vim.list_extend({ "deftool" }, arguments), { term = true, cwd = folder })
end

-- The actions of code lenses.

vim.lsp.commands["deftool.test"] = function(command)
  local lens = command.arguments[1]
  run({ "test", "--filter", lens.tool }, lens.root)
end

vim.lsp.commands["deftool.compile"] = function(command)
  run({ "compile", vim.api.nvim_buf_get_name(0) }, command.arguments[1].root)
end

vim.lsp.commands["deftool.call"] = function(command)
  local lens = command.arguments[1]
  vim.ui.input({ prompt = "Arguments of " .. lens.tool .. ": " }, function(text)
    if text then
      run({ "call", lens.tool, text == "" and "{}" or text }, lens.root)
    end
  end)
end

vim.api.nvim_create_user_command("Deftool", function(command)
  run(command.fargs)
end, {
  nargs = "+",
  desc = "Run deftool in a terminal",
  complete = function(start)
    local commands = { "call", "chat", "check", "compile", "diff", "doctor", "fmt", "run", "test", "tools", "trust" }
    return vim.tbl_filter(function(name)
      return vim.startswith(name, start)
    end, commands)
  end,
})
