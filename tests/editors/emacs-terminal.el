;;; Writes what the terminal shows to a file, again and again.  -*- lexical-binding: t; -*-

(require 'deftool-chat)
(setq deftool-rpc-arguments (split-string (getenv "ARGUMENTS"))
      inhibit-startup-screen t
      use-short-answers t)

(defvar result-file (expand-file-name (getenv "RESULT")))

(defun visible-text ()
  "Return the text of the buffer without its invisible parts."
  (let ((text ""))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((end (next-single-char-property-change (point) 'invisible)))
          (unless (invisible-p (point))
            (setq text (concat text (buffer-substring-no-properties (point) end))))
          (goto-char end))))
    text))

(defun write-result ()
  "Write the echo area and the current buffer."
  (let ((message (or (current-message) ""))
        (text (with-current-buffer (window-buffer) (visible-text))))
    (write-region (format "%s\n%s" message text) nil (concat result-file ".new") nil 'silent)
    (rename-file (concat result-file ".new") result-file t)))

(run-with-timer 0 0.02 #'write-result)
