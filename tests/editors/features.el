;;; Uses the features of a client in Emacs, and writes what it shows.  -*- lexical-binding: t; -*-

;; The file in the variable ROWS has the rows of `features.md', the variable CLIENT is `eglot' or `lsp'.  The file in
;; RESULT gets a line of JSON for each row: what is shown, or null if the client does not have the feature.

(require 'cl-lib)
(require 'imenu)
(require 'json)
(require 'seq)
(require 'xref)

(defvar root default-directory)

(defvar result-file (getenv "RESULT"))

(defvar documentation-shown nil "The texts of ElDoc for a row.")

(defvar signature-shown nil "The signature that lsp-mode shows.")

(setq deftool-checker (intern (getenv "CLIENT"))
      make-backup-files nil
      create-lockfiles nil
      eglot-autoshutdown t
      lsp-auto-guess-root nil
      ;; The default of lsp-mode 9.
      lsp-lens-enable t
      lsp-restart 'ignore
      lsp-session-file (expand-file-name "../lsp-session")
      lsp-semantic-tokens-enable t
      lsp-signature-function (lambda (text) (setq signature-shown text)))

(defvar uses-eglot (eq deftool-checker 'eglot))

;; Eglot asks before it edits files that are not open.
(advice-add 'y-or-n-p :override #'always)

(defun let-idle ()
  "Do what the command loop does after a command and while Emacs is idle."
  (run-hooks 'post-command-hook)
  (mapc #'timer-event-handler (copy-sequence timer-idle-list))
  (accept-process-output nil 0.05))

(defun lines (shown)
  "Return the texts SHOWN as lines."
  (string-join (delq nil shown) "\n"))

(defun file-name (buffer)
  "Return the name of the file of BUFFER in the project."
  (file-relative-name (file-truename (buffer-file-name buffer)) (file-truename root)))

(defun position-name (position)
  "Return the line and the column of POSITION, from 1."
  (save-excursion
    (goto-char position)
    (format "%d:%d" (line-number-at-pos) (1+ (- (point) (line-beginning-position))))))

(defun places (found)
  "Return the files and lines of the xref items FOUND."
  (lines (mapcar (lambda (item)
                   (let ((place (xref-location-marker (xref-item-location item))))
                     (with-current-buffer (marker-buffer place)
                       (format "%s:%d" (file-name (current-buffer)) (line-number-at-pos place)))))
                 found)))

(defun take-changes ()
  "Return the lines that differ from the files, and restore the texts of the files."
  (let (changed)
    (dolist (buffer (buffer-list))
      (when (and (buffer-file-name buffer) (buffer-modified-p buffer))
        (with-current-buffer buffer
          (let* ((saved (with-temp-buffer
                          (insert-file-contents (buffer-file-name buffer))
                          (buffer-string)))
                 (before (split-string saved "\n")))
            (seq-do-indexed (lambda (line index)
                              (unless (equal line (nth index before))
                                (push (format "%s:%d: %s" (file-name buffer) (1+ index) line) changed)))
                            (split-string (buffer-string) "\n"))
            (erase-buffer)
            (insert saved)
            (set-buffer-modified-p nil)))))
    (let-idle)
    (lines (nreverse changed))))

(defun findings ()
  "Return the findings that Flymake shows."
  (unless (or (flymake-diagnostics) (flymake-running-backends))
    (flymake-start))
  (lines (mapcar (lambda (finding)
                   (format "%d: %s" (line-number-at-pos (flymake-diagnostic-beg finding))
                           (flymake-diagnostic-text finding)))
                 (flymake-diagnostics))))

(defun fix ()
  "Apply the first code action."
  (if uses-eglot
      ;; With the default of the question.
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest arguments) (nth 6 arguments)))
                (last-nonmenu-event t))
        (eglot-code-actions (point) (point) nil t))
    (lsp-execute-code-action (elt (lsp-code-actions-at-point) 0)))
  (take-changes))

(defun completions (typed)
  "Return what completion offers after TYPED."
  (insert typed)
  (let-idle)
  (let (offered)
    (let ((completion-in-region-function
           (lambda (start end table predicate)
             (let ((text (buffer-substring-no-properties start end)))
               (setq offered (completion-all-completions text table predicate (length text)))))))
      (completion-at-point))
    (take-changes)
    ;; The last cell of the list contains a number.
    (string-join (cl-loop for cell on offered collect (substring-no-properties (car cell))) " ")))

(defun eldoc-texts (function)
  "Call FUNCTION as ElDoc does, and return the texts that it has passed on for this row."
  (when (memq function eldoc-documentation-functions)
    (funcall function
             (lambda (text &rest _) (when text (push (substring-no-properties text) documentation-shown)))))
  (let-idle)
  (lines documentation-shown))

(defun hover ()
  "Return the documentation at point."
  (if uses-eglot
      (eldoc-texts 'eglot-hover-eldoc-function)
    (lsp-describe-thing-at-point)
    (let ((help (get-buffer "*lsp-help*")))
      (if help (with-current-buffer help (buffer-string)) ""))))

(defun signature-help ()
  "Return the signature at point."
  (if uses-eglot
      (eldoc-texts 'eglot-signature-eldoc-function)
    (lsp-signature-activate)
    (let-idle)
    (or signature-shown "")))

(defun highlights ()
  "Return the positions of the highlights."
  (if uses-eglot (eldoc-texts 'eglot-hover-eldoc-function) (lsp-document-highlight))
  (let-idle)
  (let ((shown (seq-filter (lambda (overlay)
                             (or (eq (overlay-get overlay 'face) 'eglot-highlight-symbol-face)
                                 (overlay-get overlay 'lsp-highlight)))
                           (overlays-in (point-min) (point-max)))))
    (lines (mapcar (lambda (overlay) (position-name (overlay-start overlay))) shown))))

(defun index-names (index)
  "Return the names of an Imenu INDEX, with those of its parts."
  (cl-loop for (name . place) in index
           collect (substring-no-properties name)
           when (consp place) append (index-names place)))

(defun semantic-face ()
  "Return the face at point that a semantic token has."
  (let ((end (time-add nil 5))
        face)
    (while (progn
             (let-idle)
             (save-excursion (font-lock-fontify-region (point-min) (point-max)))
             (setq face (format "%s" (get-text-property (point) 'face)))
             (and (not (string-search "semhl" face)) (time-less-p nil end))))
    (when (time-less-p end nil)
      ;; lsp-mode drops a response that comes after a change, and does not ask again.
      (lsp-semantic-tokens-mode -1)
      (lsp-semantic-tokens-mode 1))
    face))

(defun inlay-hints ()
  "Return the inlay hints of the buffer."
  ;; What the display does.
  (jit-lock-refontify)
  (jit-lock-fontify-now)
  (let-idle)
  (lines (mapcar (lambda (overlay)
                   (when (overlay-get overlay 'eglot--inlay-hint)
                     (substring-no-properties
                      (or (overlay-get overlay 'before-string) (overlay-get overlay 'after-string)))))
                 (overlays-in (point-min) (point-max)))))

(defun move-files (name)
  "Rename the tool at point to NAME, and return the places of NAME, and the scripts."
  (lsp-rename name)
  (save-some-buffers t)
  (let ((default-directory root))
    (shell-command-to-string (format "grep -rn %s specs scripts; ls scripts" name))))

(defun shown (feature input)
  "Return what FEATURE shows at point for INPUT, or nil if the client does not have it."
  (let ((backend (xref-find-backend)))
    (pcase feature
      ((or "findings" "findings in `.el`") (findings))
      ("quick fixes" (fix))
      ("completion" (completions input))
      ("signature help" (signature-help))
      ("hover" (hover))
      ("definition"
       (places (xref-backend-definitions backend (xref-backend-identifier-at-point backend))))
      ("references"
       (places (xref-backend-references backend (xref-backend-identifier-at-point backend))))
      ("highlights" (highlights))
      ("rename" (if uses-eglot (eglot-rename input) (lsp-rename input)) (take-changes))
      ("symbols of a file" (lines (index-names (imenu--make-index-alist t))))
      ("symbols of the project" (places (xref-backend-apropos backend input)))
      ("formatting" (if uses-eglot (eglot-format-buffer) (lsp-format-buffer)) (take-changes))
      ("semantic tokens" (unless uses-eglot (semantic-face)))
      ("selection"
       (unless uses-eglot
         (lsp-extend-selection)
         (prog1 (buffer-substring-no-properties (region-beginning) (region-end))
           (deactivate-mark))))
      ("inlay hints" (when (fboundp 'eglot-inlay-hints-mode) (inlay-hints)))
      ;; They would fail, because the package has no commands for them.
      ("code lenses" (when (bound-and-true-p lsp-lens-mode) "code lenses that fail"))
      ("moved files" (unless uses-eglot (move-files input))))))

(defun is-connected ()
  "Return non-nil if the file of the buffer has its source of findings."
  (cond ((derived-mode-p 'emacs-lisp-mode) t)
        (uses-eglot (eglot-managed-p))
        (t (and (bound-and-true-p lsp-managed-mode) (lsp-workspaces)))))

(defun show (row)
  "Return what the feature of ROW shows.  Repeat it until this contains the expected texts."
  (find-file (expand-file-name (alist-get 'file row) root))
  (let ((end (time-add nil 60))
        (expected (alist-get 'expected row))
        text)
    (while (not (or (is-connected) (time-less-p end nil)))
      (let-idle))
    (setq documentation-shown nil signature-shown nil)
    (while (progn
             (goto-char (point-min))
             (forward-line (alist-get 'line row))
             (forward-char (alist-get 'column row))
             (setq text (condition-case problem
                            (shown (alist-get 'feature row) (alist-get 'input row))
                          (error (take-changes) (format "%S" problem))))
             (and text
                  (not (seq-every-p (lambda (part) (string-search part text)) expected))
                  (time-less-p nil end)))
      ;; Without requests of timers: a check in the background waits until there are none.
      (sleep-for 0.3))
    text))

(unless uses-eglot
  ;; What the user chooses when the first file of a project is opened.
  (require 'lsp-mode)
  (lsp-workspace-folders-add root))

(let ((rows (with-temp-buffer
              (insert-file-contents (getenv "ROWS"))
              (json-parse-buffer :object-type 'alist :array-type 'list)))
      (coding-system-for-write 'utf-8))
  (dolist (row rows)
    (write-region (concat (json-encode (show row)) "\n") nil result-file t 'silent)))
(when uses-eglot
  (eglot-shutdown-all))
(kill-emacs)
