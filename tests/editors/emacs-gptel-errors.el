;;; Calls exported tools that fail, with the function contract of gptel.  -*- lexical-binding: t; -*-

(require 'deftool-gptel)

(setq text-quoting-style 'grave)

(defvar result-file (expand-file-name (getenv "RESULT")))

(defun seen (text &rest values)
  "Append TEXT with VALUES to the result."
  (write-region (concat (apply #'format text values) "\n") nil result-file t 'silent))

(defvar tools nil
  "The definitions of the exported tools.")

(defun gptel-make-tool (&rest slots)
  "Store SLOTS, the definition of a tool."
  (push slots tools))

(load (expand-file-name "tools.el") nil t)

(defun function-of (name slot)
  "Return the function in SLOT of the tool NAME."
  (plist-get (cl-find name tools :key (lambda (tool) (plist-get tool :name)) :test #'equal) slot))

(defmacro seen-in (situation &rest body)
  "Report the value or error of BODY in SITUATION, and end the servers."
  (declare (indent 1))
  `(progn
     ;; gptel calls tools in a process sentinel, which inhibits `C-g'.
     (seen "%s: %s" ,situation (let ((inhibit-quit t))
                                 (condition-case problem
                                     (with-timeout (60 "nothing") ,@body)
                                   ((error quit) (format "signaled %S" problem)))))
     (deftool-rpc-disconnect)))

(defun call (name &rest arguments)
  "Call the tool NAME with ARGUMENTS, and return what its callback receives."
  (let (results)
    (apply (function-of name :function) (lambda (text) (push text results)) arguments)
    (while (not results)
      (accept-process-output nil 0.05))
    ;; Nothing may follow.
    (deftool-rpc-disconnect)
    (string-join results ", ")))

(defun after (seconds function)
  "Call FUNCTION after SECONDS."
  (run-at-time seconds nil function))

(setq deftool-rpc-arguments '("--trust"))

(seen-in "success" (call "count" "abcd"))
(seen-in "failure" (call "broken"))
(seen-in "null character" (substring (call "zero") 0 35))
(seen-in "no JSON value" (call "count" (cons "a" "b")))
(seen-in "end of the server"
  (after 0.5 (lambda () (signal-process (deftool-rpc-process (car deftool-rpc--connections)) 'KILL)))
  (call "wait"))
(let ((deftool-rpc-arguments nil))
  (seen-in "not trusted" (call "wait")))
(let ((deftool-program "missing-program"))
  (seen-in "no program" (call "count" "abcd"))
  (seen-in "approval without program" (funcall (function-of "guarded" :confirm) "a")))
(let ((default-directory (file-name-as-directory (make-temp-file "empty" t))))
  (seen-in "no project"
    (string-replace (directory-file-name default-directory) "HERE" (call "count" "abcd")))
  (seen-in "approval without project" (funcall (function-of "guarded" :confirm) "a")))
(let ((deftool-program (expand-file-name "silent")))
  (after 0.5 (lambda () (setq quit-flag t)))
  (seen-in "canceled" (call "count" "abcd"))
  (after 0.5 (lambda () (setq quit-flag t)))
  (seen-in "approval that is canceled" (funcall (function-of "guarded" :confirm) "a")))
(let ((deftool-program (expand-file-name "failing")))
  ;; Emacs sees the end before, while or after it sends the request.
  (seen-in "server that ends at once"
    (string-join (delete-dups (cl-loop repeat 50 collect (call "count" "abcd"))) ", ")))
(seen-in "end of all servers"
  (while (process-list)
    (accept-process-output nil 0.05))
  "reached")

;; `deftool-project' is selected before a project above or a connected one.
(let ((deftool-project "/missing"))
  (seen-in "missing project" (call "count" "abcd")))
(let ((deftool-project "other"))
  (seen-in "other project"
    (deftool-rpc-connect default-directory)
    (call "count" "abcd")))
(kill-emacs)
