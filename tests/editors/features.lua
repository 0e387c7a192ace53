-- Uses the features of Neovim's client, and writes what it shows.
--
-- The file in the variable ROWS has the rows of `features.md`. The file in RESULT gets a line of JSON for each row: what is
-- shown, or null if the client does not have the feature.

local root = vim.uv.fs_realpath(vim.fn.getcwd())

--- Waits for a condition, at most for a time in milliseconds.
local function wait(condition, time)
  return vim.wait(time or 2000, condition, 10)
end

local function file_name(path)
  return vim.fs.relpath(root, vim.uv.fs_realpath(path)) or path
end

--- Returns the places of the items of a list, which `ask` requests.
local function listed(ask, describe)
  local items
  ask({
    on_list = function(list)
      items = list.items
    end,
  })
  wait(function()
    return items ~= nil
  end)
  return table.concat(vim.tbl_map(describe, items or {}), "\n")
end

local function place(item)
  return string.format("%s:%d", file_name(item.filename), item.lnum)
end

--- Returns the text of the window above the others, and closes it.
local function float(open)
  open()
  local window
  wait(function()
    for _, other in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(other).relative ~= "" then
        window = other
      end
    end
    return window ~= nil
  end)
  if not window then
    return ""
  end
  local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
  vim.api.nvim_win_close(window, true)
  return table.concat(lines, "\n")
end

--- Returns the lines that differ from the files once there are any, and restores the texts of the files.
local function take_changes()
  local changed = {}
  wait(function()
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      local path = vim.api.nvim_buf_get_name(buffer)
      if vim.bo[buffer].modified and vim.bo[buffer].buftype == "" and vim.uv.fs_stat(path) then
        local saved = vim.fn.readfile(path)
        for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
          if line ~= saved[number] then
            table.insert(changed, string.format("%s:%d: %s", file_name(path), number, line))
          end
        end
        vim.api.nvim_buf_set_lines(buffer, 0, -1, false, saved)
        vim.bo[buffer].modified = false
      end
    end
    return #changed > 0
  end)
  return table.concat(changed, "\n")
end

local function findings()
  return table.concat(
    vim.tbl_map(function(finding)
      return string.format("%d: %s", finding.lnum + 1, finding.message)
    end, vim.diagnostic.get(0)),
    "\n"
  )
end

--- Types a text in Insert mode, asks for completions, and returns what the menu offers.
local function completions(typed)
  local offered
  local timer = assert(vim.uv.new_timer())
  local started = vim.uv.now()
  timer:start(
    20,
    20,
    vim.schedule_wrap(function()
      local items = vim.fn.complete_info({ "items" }).items or {}
      if offered == nil and (#items > 0 or vim.uv.now() - started > 2000) then
        offered = vim.tbl_map(function(item)
          return item.abbr ~= "" and item.abbr or item.word
        end, items)
        timer:stop()
        vim.api.nvim_input("<C-e><Esc>")
      end
    end)
  )
  -- With `!`, Insert mode does not end with the keys.
  vim.api.nvim_feedkeys(vim.keycode("i" .. typed .. "<C-x><C-o>"), "tx!", false)
  timer:close()
  take_changes()
  return table.concat(offered or {}, " ")
end

local function highlights()
  vim.lsp.buf.clear_references()
  vim.lsp.buf.document_highlight()
  local namespace = vim.api.nvim_create_namespace("nvim.lsp.references")
  local marks = {}
  wait(function()
    marks = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {})
    return #marks > 0
  end)
  return table.concat(
    vim.tbl_map(function(mark)
      return string.format("%d:%d", mark[2] + 1, mark[3] + 1)
    end, marks),
    "\n"
  )
end

local function fold()
  vim.wo.foldmethod = "expr"
  vim.wo.foldexpr = "v:lua.vim.lsp.foldexpr()"
  wait(function()
    return vim.fn.foldlevel(1) > 0
  end)
  vim.cmd("normal! zM")
  local shown = string.format("%d-%d", vim.fn.foldclosed(1), vim.fn.foldclosedend(1))
  vim.cmd("normal! zR")
  return shown
end

local function selection()
  vim.lsp.buf.selection_range(1)
  wait(function()
    return vim.fn.mode() == "v"
  end)
  local lines = vim.fn.getregion(vim.fn.getpos("v"), vim.fn.getpos("."))
  vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  return table.concat(lines, "\n")
end

local function inlay_hints()
  vim.lsp.inlay_hint.enable(true, { bufnr = 0 })
  local hints = {}
  wait(function()
    hints = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #hints > 0
  end)
  return table.concat(
    vim.tbl_map(function(hint)
      return hint.inlay_hint.label
    end, hints),
    "\n"
  )
end

local function code_lenses()
  local buffer = vim.api.nvim_get_current_buf()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  wait(function()
    return #vim.lsp.codelens.get(buffer) > 0
  end)
  return table.concat(
    vim.tbl_map(function(lens)
      return lens.command.title
    end, vim.lsp.codelens.get(buffer)),
    " "
  )
end

local function semantic_tokens()
  local tokens = vim.lsp.semantic_tokens.get_at_pos() or {}
  return table.concat(
    vim.tbl_map(function(token)
      return token.type
    end, tokens),
    " "
  )
end

--- Renames the tool at the cursor, and returns the places of its name, and the scripts.
local function move_files(name)
  vim.lsp.buf.rename(name)
  wait(function()
    return vim.fn.search(name, "nw") > 0
  end)
  vim.cmd("silent! wall")
  return vim.fn.system("grep -rn " .. name .. " specs scripts; ls scripts")
end

local features = {
  ["findings"] = findings,
  ["quick fixes"] = function()
    local first
    vim.lsp.buf.code_action({
      apply = true,
      filter = function(action)
        first = first or action.title
        return action.title == first
      end,
    })
    return take_changes()
  end,
  ["completion"] = completions,
  ["signature help"] = function()
    return float(vim.lsp.buf.signature_help)
  end,
  ["hover"] = function()
    return float(vim.lsp.buf.hover)
  end,
  ["definition"] = function()
    return listed(vim.lsp.buf.definition, place)
  end,
  ["references"] = function()
    return listed(function(options)
      vim.lsp.buf.references(nil, options)
    end, place)
  end,
  ["highlights"] = highlights,
  ["rename"] = function(name)
    vim.lsp.buf.rename(name)
    return take_changes()
  end,
  ["symbols of a file"] = function()
    return listed(vim.lsp.buf.document_symbol, function(item)
      return item.text
    end)
  end,
  ["symbols of the project"] = function(query)
    return listed(function(options)
      vim.lsp.buf.workspace_symbol(query, options)
    end, place)
  end,
  ["formatting"] = function()
    vim.lsp.buf.format({ async = false })
    return take_changes()
  end,
  ["semantic tokens"] = semantic_tokens,
  ["folding"] = fold,
  ["selection"] = selection,
  ["inlay hints"] = inlay_hints,
  ["code lenses"] = code_lenses,
  ["moved files"] = move_files,
}

--- Returns what the feature of a row shows. Repeats it until this contains the expected texts.
local function show(row)
  vim.cmd.edit(row.file)
  local feature = features[row.feature]
  if not feature then
    return vim.NIL
  end
  wait(function()
    return #vim.lsp.get_clients({ bufnr = 0, name = "deftool" }) == 1
  end, 60000)
  local shown
  local ending = vim.uv.hrtime() + 60e9
  repeat
    vim.api.nvim_win_set_cursor(0, { row.line + 1, row.column })
    shown = feature(row.input)
    local is_expected = vim.iter(row.expected):all(function(part)
      return shown:find(part, 1, true) ~= nil
    end)
    -- The server may not have read the project yet.
    vim.wait(is_expected and 0 or 50)
  until is_expected or vim.uv.hrtime() > ending
  return shown
end

local function main()
  vim.o.completeopt = "menuone,noinsert"
  vim.o.hidden = true
  -- The cursor can be at the end of a line.
  vim.o.virtualedit = "onemore"
  local rows = vim.json.decode(table.concat(vim.fn.readfile(vim.env.ROWS), "\n"))
  for _, row in ipairs(rows) do
    local ok, shown = xpcall(show, debug.traceback, row)
    vim.fn.writefile({ vim.json.encode(shown) }, vim.env.RESULT, "a")
  end
end

-- After the start, so that the events of the client are handled.
vim.schedule(function()
  local ok, problem = xpcall(main, debug.traceback)
  if not ok then
    io.stderr:write(problem, "\n")
  end
  vim.cmd("qall!")
end)
