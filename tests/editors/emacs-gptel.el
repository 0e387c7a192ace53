;;; Lets gptel use the tools of a project with a model.  -*- lexical-binding: t; -*-

(require 'deftool-gptel)
(require 'gptel)
(require 'gptel-openai)
(setq deftool-rpc-arguments '("--trust")
      gptel-backend (gptel-make-openai "stub" :host (getenv "ADDRESS") :protocol "http" :key "none"
                                       :stream t :models '(stub))
      gptel-model 'stub
      gptel-log-level nil
      text-quoting-style 'grave
      make-backup-files nil)

(defvar result-file (expand-file-name (getenv "RESULT")))

(defun seen (text &rest values)
  "Append TEXT with VALUES to the result."
  (write-region (concat (apply #'format text values) "\n") nil result-file t 'silent))

(defun wait-for (is-reached)
  "Wait until IS-REACHED returns non-nil."
  (while (not (funcall is-reached))
    (accept-process-output nil 0.05)))

(defun names (tools)
  "Return the sorted names of TOOLS."
  (string-join (sort (mapcar #'gptel-tool-name tools) #'string<) " "))

(setq gptel-tools (deftool-gptel-connect default-directory))
(dolist (tool gptel-tools)
  (seen "tool: %s/%s %s %s" (gptel-tool-category tool) (gptel-tool-name tool)
        (gptel-tool-description tool)
        (pcase (gptel-tool-confirm tool) ((pred functionp) "sometimes") ('nil "never") (_ "always"))))

(defun ask (prompt)
  "Send PROMPT and wait for the end of the request."
  (let (is-answered is-done)
    (gptel-request prompt
      :stream t
      :callback (lambda (response _)
                  (pcase response
                    ((pred stringp) (seen "text: %s" response) (setq is-answered t))
                    (`(tool-call . ,calls)
                     (dolist (call calls)
                       (seen "asked: %s %S" (gptel-tool-name (car call)) (cadr call)))
                     (gptel--accept-tool-calls calls nil))
                    ;; Each turn ends with t.
                    ('t (setq is-done is-answered))
                    ('nil (seen "failed") (setq is-done t)))))
    (wait-for (lambda () is-done))))

(ask "Use the tools.")

;; The output of `deftool compile' replaces the tools.
(load (expand-file-name "tools.el") nil t)
(let* ((compiled (gptel-get-tool '("text" "count")))
       (guarded (gptel-get-tool '("misc" "guarded")))
       result)
  (funcall (gptel-tool-function compiled) (lambda (text) (setq result text)) "abcdef")
  (wait-for (lambda () result))
  (seen "compiled: %s %s %s" result
        (funcall (gptel-tool-confirm guarded) "/etc") (funcall (gptel-tool-confirm guarded) "etc"))
  ;; Both calls fail before they start.
  (let ((gptel-tools (list compiled guarded))
        (deftool-project "/missing"))
    (ask "Use the compiled tools.")))

;; A save changes one tool and removes another.
(let ((changed (cl-find "count" gptel-tools :key #'gptel-tool-name :test #'equal)))
  (with-current-buffer (find-file-noselect "specs/tools.eld")
    (search-forward "Count the characters of a text.")
    (replace-match "Count characters.")
    (search-forward "(deftool :name \"broken\"")
    (replace-match "(deftool :name \"mended\"")
    (save-buffer))
  (wait-for (lambda () (equal (gptel-tool-description changed) "Count characters.")))
  ;; The removal is a later reload.
  (wait-for (lambda () (not (string-search "broken" (names gptel-tools)))))
  (seen "enabled: %s" (names gptel-tools))
  (seen "known: %s" (names (gptel-get-tool "deftool")))
  ;; A save that breaks the tool is reported, and the tool stays as it was.
  (let (reported)
    (cl-letf (((symbol-function 'message) (lambda (&rest text) (setq reported (apply #'format text)))))
      (with-current-buffer (find-file-noselect "specs/tools.eld")
        (goto-char (point-min))
        (search-forward ":type string")
        (replace-match ":type strng")
        (save-buffer))
      (wait-for (lambda () (and reported (string-search "strng" reported)))))
    (seen "broken: %s" (replace-regexp-in-string "[0-9]+ ms" "N ms" reported))
    (seen "kept: %s" (gptel-tool-description changed))))
(kill-emacs)
