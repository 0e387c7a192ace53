-- Uses the plugin in a real Neovim, and prints what a user would see. Run by `tests/it/editors.rs` in a project folder.

local output = {}
local function print_line(...)
  table.insert(output, string.format(...))
end

--- Waits for a condition; fails after 20 s.
local function wait(what, condition)
  assert(vim.wait(20000, condition, 10), "no " .. what)
end

local function diagnostics()
  local found = vim.tbl_map(function(found)
    return string.format("%d:%d %s", found.lnum + 1, found.col + 1, found.code)
  end, vim.diagnostic.get(0))
  table.sort(found)
  return table.concat(found, " ")
end

local function wait_for_diagnostics(expected)
  assert(vim.wait(20000, function()
    return diagnostics() == expected
  end, 10), string.format("expected %q, found %q", expected, diagnostics()))
  print_line("diagnostics: %s", expected)
end

--- Sends a request about a position, from 1, and returns the result.
local function request(method, line, column, more)
  local params = vim.lsp.util.make_position_params(0, "utf-8")
  params.position = { line = line - 1, character = column - 1 }
  local client = vim.lsp.get_clients({ bufnr = 0 })[1]
  local response = client:request_sync("textDocument/" .. method, vim.tbl_extend("force", params, more or {}), 20000, 0)
  assert(not response.err, vim.inspect(response.err))
  return response.result
end

local function lines()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "|")
end

local function main()
  if vim.env.WITHOUT_MOVES then
    local capabilities = vim.lsp.protocol.make_client_capabilities()
    -- Neovim merges an empty list with its own.
    capabilities.workspace.workspaceEdit.resourceOperations = { "create" }
    vim.lsp.config("deftool", { capabilities = capabilities })
  end
  vim.cmd.edit("specs/a.eld")
  wait("client", function()
    return #vim.lsp.get_clients({ bufnr = 0, name = "deftool" }) == 1
  end)
  -- The configuration in docs/editors.md has only the server.
  local has_plugin = vim.fn.exists(":Deftool") == 2
  print_line("filetype: %s", vim.bo.filetype)
  if has_plugin then
    print_line("commentstring: %s", vim.bo.commentstring)
  end
  wait_for_diagnostics("2:29 DT204")

  -- Quick fix.
  vim.api.nvim_win_set_cursor(0, { 2, 30 })
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.isPreferred or action.title:find("write") ~= nil
    end,
  })
  wait("fix", function()
    return lines():find("strng") == nil
  end)
  print_line("fixed: %s", lines())
  wait_for_diagnostics("")

  -- Completion of a key, with the text before the cursor.
  vim.api.nvim_buf_set_text(0, 0, 24, 0, 24, { " :eff" })
  local completed = request("completion", 1, 30)
  local labels = vim.tbl_map(function(item)
    return item.label
  end, completed.items or completed)
  print_line("completion: %s", vim.tbl_contains(labels, ":effect"))
  vim.api.nvim_buf_set_text(0, 0, 24, 0, 29, {})

  print_line("hover: %s", request("hover", 1, 11).contents.value:match("^[^\n]*"))
  local definition = request("definition", 1, 17)[1]
  print_line("definition: %s", vim.fs.basename(definition.uri))
  print_line("references: %d", #request("references", 2, 17, { context = { includeDeclaration = true } }))

  -- Rename in the spec and in the script, which is not open.
  vim.api.nvim_win_set_cursor(0, { 2, 17 })
  vim.lsp.buf.rename("town")
  wait("rename", function()
    return lines():find("town") ~= nil
  end)
  print_line("renamed: %s", lines())
  vim.cmd("silent wall")
  print_line("script: %s", vim.fn.readfile("scripts/weather.lua")[1])
  print_line("test: %s", vim.fn.readfile("scripts/weather_test.lua")[1])

  vim.lsp.buf.format({ async = false })
  print_line("formatted: %s", lines())
  print_line("symbols: %s", request("documentSymbol", 1, 1)[1].name)
  print_line("tokens: %s", #request("semanticTokens/full", 1, 1).data > 0)
  print_line("lenses: %d", #request("codeLens", 1, 1))
  vim.cmd("silent write")

  -- Inlay hints and findings in the script.
  vim.cmd.edit("scripts/weather.lua")
  wait("client of the script", function()
    return #vim.lsp.get_clients({ bufnr = 0, name = "deftool" }) == 1
  end)
  local whole = { start = { line = 0, character = 0 }, ["end"] = { line = 9, character = 0 } }
  print_line("hint: %s", request("inlayHint", 1, 1, { range = whole })[1].label)
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { "return function(town) return nowhere end" })
  wait_for_diagnostics("1:30 DT420")
  vim.cmd("edit!")

  if has_plugin then
    vim.cmd("Deftool tools")
    wait("output of the command", function()
      return lines():find("weather") ~= nil
    end)
    print_line("command: %s", vim.bo.buftype)
    vim.cmd("wincmd p")
    vim.cmd.edit("specs/a.eld")
    vim.lsp.commands["deftool.test"]({ arguments = { { root = vim.fn.getcwd(), tool = "weather" } } })
    wait("output of the lens", function()
      return lines():find("1 example") ~= nil
    end)
    print_line("lens: %s", vim.bo.buftype)
    vim.cmd("wincmd p")
  end

  -- Rename of the tool. Its script and its test move, if the editor can move files.
  vim.cmd.edit("specs/a.eld")
  vim.api.nvim_win_set_cursor(0, { 2, 9 })
  vim.lsp.buf.rename("forecast")
  wait("rename of the tool", function()
    return lines():find("forecast") ~= nil
  end)
  print_line("tool: %s", lines())
  vim.cmd("silent! wall")
  local test = vim.env.WITHOUT_MOVES and "scripts/weather_test.lua" or "scripts/forecast_test.lua"
  print_line("test: %s", vim.fn.readfile(test)[1])
  for _, command in ipairs({ "check", "test" }) do
    vim.fn.system({ "deftool", command })
    print_line(command == "check" and "check: %d" or "tests: %d", vim.v.shell_error)
  end
end

local ok, problem = xpcall(main, debug.traceback)
if not ok then
  print_line("failed: %s", problem)
end
vim.fn.writefile(output, vim.env.RESULT)
vim.cmd("qall!")
