;;; deftool.el --- Edit the tools of language models  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The deftool authors

;; Author: The deftool authors
;; Maintainer: The deftool authors
;; URL: https://docs.rs/deftool
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: languages, tools
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `deftool-mode' is a major mode for the spec files of deftool projects.
;; It uses the language server of deftool through Eglot or lsp-mode.
;; Without them, Flymake shows the findings of `deftool check'.  The
;; scripts of a project use the same server.
;;
;; In Emacs Lisp with tool forms, such as an init file with
;; `gptel-make-tool', Flymake shows the findings about these forms.
;;
;; The program `deftool' must be in `exec-path'; see `deftool-program'.

;;; Code:

(require 'flymake)
(require 'subr-x)

(declare-function eglot-ensure "eglot")
(declare-function lsp-deferred "lsp-mode")
(declare-function lsp-register-client "lsp-mode" (client))
(declare-function lsp-stdio-connection "lsp-mode" (command &optional test-command))
(declare-function make-lsp-client "lsp-mode" (&rest arguments) t)
(declare-function lua-mode "lua-mode")
(declare-function lua-ts-mode "lua-ts-mode")
(declare-function treesit-ready-p "treesit" (language &optional quiet))
(defvar eglot-server-programs)
(defvar lsp-lens-enable)
(defvar lsp-language-id-configuration)

(defgroup deftool nil
  "Tools of language models."
  :group 'tools
  :prefix "deftool-")

(defcustom deftool-program "deftool"
  "Name or path of the program `deftool'."
  :type 'string)

(defcustom deftool-checker (if (locate-library "eglot") 'eglot 'flymake)
  "The source of the findings in `deftool-mode' and in scripts."
  :type '(choice (const :tag "Language server, through Eglot" eglot)
                 (const :tag "Language server, through lsp-mode" lsp)
                 (const :tag "Flymake with `deftool check'" flymake)
                 (const :tag "None" nil)))

(defcustom deftool-check-emacs-lisp t
  "Whether Flymake shows findings about the tool forms of Emacs Lisp files."
  :type 'boolean)

(defconst deftool--font-lock-keywords
  `((,(concat "(" (regexp-opt '("deftool" "defexit" "defworker" "defmcp" "defdialect" "defask" "defproject")
                              'symbols))
     (1 font-lock-keyword-face))
    ("\\_<:\\(?:\\sw\\|\\s_\\)+" (0 font-lock-builtin-face))))

;;;###autoload
(define-derived-mode deftool-mode lisp-data-mode "deftool"
  "Major mode for the spec files of deftool projects."
  (setq-local comment-start ";; ")
  (font-lock-add-keywords nil deftool--font-lock-keywords)
  (deftool--start-checker))

(defconst deftool--server-modes '(deftool-mode deftool-script-mode lua-mode lua-ts-mode)
  "The modes of the files of a project, which have one server.")

(defun deftool--start-checker ()
  "Start the source of findings in this buffer."
  (pcase deftool-checker
    ('eglot
     (require 'eglot)
     ;; Local, because other projects have other servers for Lua.
     (setq-local eglot-server-programs
                 (cons (cons deftool--server-modes #'deftool--server) eglot-server-programs))
     (eglot-ensure))
    ('lsp
     (deftool--register-lsp-client)
     ;; The commands of the code lenses exist only in other editors.
     (setq-local lsp-lens-enable nil)
     (lsp-deferred))
    ('flymake
     (add-hook 'flymake-diagnostic-functions #'deftool-flymake nil t)
     (flymake-mode))))

(defun deftool--server (&rest _)
  "Return the command of the language server."
  (list (deftool-find-program) "lsp"))

(defun deftool--register-lsp-client ()
  "Tell lsp-mode about the language server, once."
  (unless (featurep 'deftool-lsp-client)
    (require 'lsp-mode)
    (add-to-list 'lsp-language-id-configuration '(deftool-mode . "eld"))
    (add-to-list 'lsp-language-id-configuration '(deftool-script-mode . "lua"))
    (lsp-register-client
     (make-lsp-client :new-connection (lsp-stdio-connection #'deftool--server)
                      :activation-fn (lambda (&rest _)
                                       (and (memq major-mode deftool--server-modes) (deftool--root)))
                      :priority 1
                      :server-id 'deftool))
    (provide 'deftool-lsp-client)))

(defun deftool--root ()
  "Return the folder of the project that contains the file of this buffer, or nil."
  (and buffer-file-name (locate-dominating-file buffer-file-name "specs")))

(defun deftool-find-program ()
  "Return `deftool-program', or signal an error if it does not exist."
  (unless (executable-find deftool-program)
    (user-error "Cannot find the program `%s'; see `deftool-program'" deftool-program))
  deftool-program)

;; Other programs use the extension, too.
;;;###autoload
(add-to-list 'auto-mode-alist '("/specs/.*\\.eld\\'" . deftool-mode))

;;;; Scripts

(defconst deftool--script-keywords
  `((,(concat "\\_<" (regexp-opt '("and" "break" "continue" "do" "else" "elseif" "end" "export" "for" "function"
                                   "if" "in" "local" "not" "or" "repeat" "return" "then" "type" "until" "while"))
              "\\_>")
     (0 font-lock-keyword-face))
    ("\\_<\\(?:true\\|false\\|nil\\)\\_>" (0 font-lock-constant-face))
    ("\\_<function\\s-+\\([[:alnum:]_.:]+\\)" (1 font-lock-function-name-face))))

(defvar deftool-script-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?- ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\' "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?_ "_" table)
    table)
  "The syntax of scripts.")

;;;###autoload
(define-derived-mode deftool-script-mode prog-mode "deftool script"
  "Major mode for scripts, in an Emacs that has no mode for Lua."
  (setq-local comment-start "-- ")
  (setq-local font-lock-defaults '(deftool--script-keywords))
  (deftool-set-up-script))

;;;###autoload
(defun deftool-script-file ()
  "Choose the mode of a Lua file: a mode for Lua, if Emacs has one."
  (cond ((require 'lua-mode nil t) (lua-mode))
        ((and (fboundp 'lua-ts-mode) (require 'treesit nil t) (treesit-ready-p 'lua t)) (lua-ts-mode))
        (t (deftool-script-mode))))

;;;###autoload
(defun deftool-set-up-script ()
  "Start the source of findings in a script of a project."
  (when (and deftool-checker (deftool--root) (executable-find deftool-program))
    (deftool--start-checker)))

;;;###autoload
(progn
  (add-to-list 'auto-mode-alist '("/scripts/.*\\.luau?\\'" . deftool-script-file))
  (add-hook 'lua-mode-hook #'deftool-set-up-script)
  (add-hook 'lua-ts-mode-hook #'deftool-set-up-script))

;;;; Tool forms in Emacs Lisp

(defconst deftool--tool-forms
  (concat "(" (regexp-opt '("deftool" "defexit" "defworker" "defmcp" "defdialect" "defask"
                            "gptel-make-tool" "gptel-make-preset" "llm-make-tool")
                          'symbols))
  "Matches the beginning of a tool form.")

;;;###autoload
(defun deftool-check-forms ()
  "Let Flymake show findings about the tool forms of this buffer.
A file without tool forms is looked at again when it is saved."
  (when (and deftool-check-emacs-lisp buffer-file-name (executable-find deftool-program))
    (if (not (save-excursion (goto-char (point-min)) (re-search-forward deftool--tool-forms nil t)))
        (add-hook 'after-save-hook #'deftool-check-forms nil t)
      (remove-hook 'after-save-hook #'deftool-check-forms t)
      ;; Without Flymake before, only these findings are shown.
      (unless (bound-and-true-p flymake-mode)
        (setq-local flymake-diagnostic-functions nil))
      (add-hook 'flymake-diagnostic-functions #'deftool-flymake nil t)
      (flymake-mode))))

;; After the hooks of the user, which may turn Flymake on.
;;;###autoload
(add-hook 'emacs-lisp-mode-hook #'deftool-check-forms 90)

;;;; Flymake

(defvar-local deftool--process nil
  "The running check of this buffer.")

(defun deftool-flymake (report &rest _)
  "Check the buffer with `deftool check' and pass the findings to REPORT."
  (when (process-live-p deftool--process)
    (kill-process deftool--process))
  (let* ((source (current-buffer))
         (name (or buffer-file-name "stdin.eld"))
         (finish
          (lambda (process _)
            (when (memq (process-status process) '(exit signal))
              (unwind-protect
                  ;; A later check replaces an earlier one.
                  (when (and (buffer-live-p source)
                             (eq process (buffer-local-value 'deftool--process source)))
                    (deftool--report process source report))
                (kill-buffer (process-buffer process)))))))
    (setq deftool--process
          (make-process
           :name "deftool-check" :noquery t :connection-type 'pipe
           :buffer (generate-new-buffer " *deftool-check*")
           :stderr (get-buffer-create " *deftool-check-errors*")
           :command (list (deftool-find-program) "check" "-" "--stdin-filename" name
                          "--format" "concise" "--quiet")
           :sentinel finish))
    (save-restriction
      (widen)
      (process-send-region deftool--process (point-min) (point-max)))
    (process-send-eof deftool--process)))

(defun deftool--report (process source report)
  "Pass the findings that PROCESS printed about SOURCE to REPORT."
  (pcase (process-exit-status process)
    ((or 0 1)
     (funcall report
              (with-current-buffer (process-buffer process)
                (goto-char (point-min))
                (let (findings)
                  (while (re-search-forward
                          "^.+?:\\([0-9]+\\):\\([0-9]+\\): \\(error\\|warning\\|note\\)\\(.+\\)$" nil t)
                    (push (deftool--finding source) findings))
                  (nreverse findings)))))
    (_ (funcall report :panic
                :explanation (with-current-buffer " *deftool-check-errors*"
                               (string-trim (buffer-string)))))))

(defun deftool--finding (source)
  "Return the Flymake diagnostic about SOURCE of the last match."
  (let* ((line (string-to-number (match-string 1)))
         (column (string-to-number (match-string 2)))
         (kind (match-string 3))
         (text (concat kind (match-string 4)))
         (region (flymake-diag-region source line column)))
    (flymake-make-diagnostic source (car region) (cdr region)
                             (intern (concat ":" kind)) text)))

(provide 'deftool)
;;; deftool.el ends here
