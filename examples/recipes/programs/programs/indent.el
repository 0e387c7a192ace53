;; In batch mode, Emacs reads a line of stdin as from a minibuffer. The JSON is one line.
(let ((code (gethash "code" (json-parse-string (read-from-minibuffer "")))))
  (with-temp-buffer
    (insert code)
    (emacs-lisp-mode)
    (let ((inhibit-message t) (indent-tabs-mode nil))
      (indent-region (point-min) (point-max)))
    (princ (buffer-string))))
