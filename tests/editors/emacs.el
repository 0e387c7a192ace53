;;; Opens a spec in deftool-mode and prints what the editor shows.  -*- lexical-binding: t; -*-

(setq deftool-checker (intern (getenv "CHECKER"))
      flymake-no-changes-timeout 0.05
      eglot-autoshutdown t
      make-backup-files nil)

(defvar result-file (expand-file-name (getenv "RESULT")))

(defun seen (text &rest values)
  "Append TEXT with VALUES to the result."
  (write-region (concat (apply #'format text values) "\n") nil result-file t 'silent))

(defun shown ()
  "Return the findings of the buffer."
  (mapconcat (lambda (finding)
               (format "%s %s %s" (line-number-at-pos (flymake-diagnostic-beg finding))
                       (car (split-string (flymake-diagnostic-text finding) "\n"))
                       (buffer-substring (flymake-diagnostic-beg finding) (flymake-diagnostic-end finding))))
             (flymake-diagnostics) "; "))

(defun wait-for (is-reached)
  "Wait until IS-REACHED returns non-nil."
  (while (not (funcall is-reached))
    (accept-process-output nil 0.05)))

;; Eglot asks before it edits files that are not open.
(advice-add 'y-or-n-p :override #'always)

(find-file "specs/a.eld")
(seen "mode: %s" major-mode)
;; What the command loop does.
(run-hooks 'post-command-hook)
(when (eq deftool-checker 'eglot)
  (wait-for #'eglot-managed-p))
(flymake-start)
(wait-for (lambda () (flymake-diagnostics)))
(seen "findings: %s" (shown))
(goto-char (point-min))
(search-forward "strng")
(replace-match "string")
(run-hooks 'post-command-hook)
(when (eq deftool-checker 'eglot)
  (eglot--signal-textDocument/didChange))
(flymake-start)
(wait-for (lambda () (not (flymake-diagnostics))))
(seen "repaired: %s" (shown))
(font-lock-ensure)
(goto-char (point-min))
(search-forward "deftool")
(seen "face: %s" (get-text-property (match-beginning 0) 'face))
;; A script of the project, in an Emacs without a mode for Lua.
(with-current-buffer (find-file-noselect "../scripts/weather.lua")
  (run-hooks 'post-command-hook)
  (when (eq deftool-checker 'eglot)
    (wait-for #'eglot-managed-p))
  (font-lock-ensure)
  (seen "script: %s %s" major-mode (get-text-property 1 'face)))
;; An init file, without any configuration.
(with-current-buffer (find-file-noselect "../plain.el")
  (seen "no forms: %s" (bound-and-true-p flymake-mode))
  (goto-char (point-max))
  (insert "(gptel-make-tool :name \"look\" :function #'look :descripton \"Look.\")\n")
  (save-buffer)
  (flymake-start)
  (wait-for (lambda () (flymake-diagnostics)))
  (seen "forms: %s" (shown)))
(when (eq deftool-checker 'eglot)
  (goto-char (point-min))
  (search-forward "city")
  (eglot-rename "town")
  (seen "renamed: %s" (buffer-string))
  (seen "script: %s" (with-current-buffer (find-file-noselect "../scripts/weather.lua") (buffer-string)))
  (seen "test: %s" (with-current-buffer (find-file-noselect "../scripts/weather_test.lua") (buffer-string)))
  (eglot-format-buffer)
  (seen "formatted: %s" (buffer-string))
  ;; The tool works after its rename, whether Eglot can move files or not.
  (goto-char (point-min))
  (search-forward "\"weather")
  (eglot--signal-textDocument/didChange)
  (eglot-rename "forecast")
  (save-some-buffers t)
  (seen "tests: %s" (call-process "deftool" nil nil nil "test"))
  (seen "called: %s" (shell-command-to-string "deftool call forecast town=Oslo 2>&1"))
  (eglot-shutdown (eglot-current-server)))
(set-buffer-modified-p nil)
(kill-emacs)
