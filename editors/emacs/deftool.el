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
;; It uses the language server of deftool through Eglot.  Without Eglot,
;; Flymake shows the findings of `deftool check'.
;;
;; The program `deftool' must be in `exec-path'; see `deftool-program'.

;;; Code:

(require 'flymake)
(require 'subr-x)

(declare-function eglot-ensure "eglot")
(defvar eglot-server-programs)

(defgroup deftool nil
  "Tools of language models."
  :group 'tools
  :prefix "deftool-")

(defcustom deftool-program "deftool"
  "Name or path of the program `deftool'."
  :type 'string)

(defcustom deftool-checker (if (locate-library "eglot") 'eglot 'flymake)
  "The source of the findings in `deftool-mode'."
  :type '(choice (const :tag "Language server" eglot)
                 (const :tag "Flymake with `deftool check'" flymake)
                 (const :tag "None" nil)))

(defconst deftool--font-lock-keywords
  `((,(regexp-opt '("(deftool" "(defexit" "(defworker" "(defmcp" "(defproject"))
     (0 font-lock-keyword-face))
    ("\\_<:\\(?:\\sw\\|\\s_\\)+" (0 font-lock-builtin-face))))

;;;###autoload
(define-derived-mode deftool-mode lisp-data-mode "deftool"
  "Major mode for the spec files of deftool projects."
  (setq-local comment-start ";; ")
  (font-lock-add-keywords nil deftool--font-lock-keywords)
  (pcase deftool-checker
    ('eglot
     (require 'eglot)
     (add-to-list 'eglot-server-programs '(deftool-mode . deftool--server))
     (eglot-ensure))
    ('flymake
     (add-hook 'flymake-diagnostic-functions #'deftool-flymake nil t)
     (flymake-mode))))

(defun deftool--server (&rest _)
  "Return the command of the language server."
  (list (deftool-find-program) "lsp"))

(defun deftool-find-program ()
  "Return `deftool-program', or signal an error if it does not exist."
  (unless (executable-find deftool-program)
    (user-error "Cannot find the program `%s'; see `deftool-program'" deftool-program))
  deftool-program)

;; Other programs use the extension, too.
;;;###autoload
(add-to-list 'auto-mode-alist '("/specs/.*\\.eld\\'" . deftool-mode))

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
