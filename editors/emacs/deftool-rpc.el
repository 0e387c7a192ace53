;;; deftool-rpc.el --- Connections to `deftool rpc'  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The deftool authors
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A connection is a process `deftool rpc' for one project.  Messages are
;; JSON, one on each line.  Objects are plists, arrays are vectors, null is
;; `:null' and false is `:json-false', so every value can be sent back
;; without changes.  The library jsonrpc.el is not used, because it converts
;; null to an empty object and blocks Emacs while the user decides about a
;; call.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'deftool)

(defcustom deftool-project nil
  "The project of all commands.
If it is nil, they use the project that contains the current buffer, and
your tools for all projects."
  :type '(choice (const :tag "That of the buffer" nil) directory)
  :group 'deftool)

(defcustom deftool-rpc-arguments nil
  "Additional arguments of `deftool rpc', such as \"--endpoint\" and a URL."
  :type '(repeat string)
  :group 'deftool)

(defvar deftool-rpc-message-functions nil
  "Functions that handle the notifications and requests of a server.
They are called with the connection, the method, the parameters and the
ID of the request, which is nil for a notification, until one returns
non-nil.")

(cl-defstruct (deftool-rpc (:constructor deftool-rpc--make) (:copier nil))
  "A connection to `deftool rpc'."
  (project nil :documentation "The folder of the project.")
  (process nil :documentation "The process.")
  (tools nil :documentation "The tools in the last result of `list'.")
  (last-id 0 :documentation "The ID of the last request.")
  (pending (make-hash-table) :documentation "A function for each request without response.")
  (chunks nil :documentation "The received parts of an incomplete line, the last one first.")
  (errors "" :documentation "The output on stderr.")
  (error-process nil :documentation "The process that reads stderr."))

(defvar deftool-rpc--connections nil
  "The connections of all projects.")

(defun deftool-rpc-find-project ()
  "Return the folder of `deftool-project', or of the current project.
Outside of projects, return the current folder, in which the server
offers the user's tools for all projects."
  (expand-file-name
   (or deftool-project
       (locate-dominating-file default-directory "specs")
       default-directory)))

(defun deftool-rpc-connect (folder)
  "Return the connection for the project in FOLDER."
  (let ((project (file-name-as-directory (expand-file-name folder))))
    (or (cl-find-if (lambda (connection)
                      (and (equal (deftool-rpc-project connection) project)
                           (process-live-p (deftool-rpc-process connection))))
                    deftool-rpc--connections)
        (deftool-rpc--start project))))

(defun deftool-rpc--start (project)
  "Start a server for PROJECT, load its tools and return the connection."
  (unless (file-directory-p project)
    (user-error "`%s' is not a directory" project))
  (let* ((default-directory project)
         (program (deftool-find-program))
         (connection (deftool-rpc--make :project project)))
    (setf (deftool-rpc-error-process connection)
          (make-pipe-process
           :name "deftool-rpc-errors" :noquery t :sentinel #'ignore
           :filter (lambda (_ text)
                     (setf (deftool-rpc-errors connection)
                           (concat (deftool-rpc-errors connection) text))))
          (deftool-rpc-process connection)
          (make-process
           :name "deftool-rpc" :noquery t :connection-type 'pipe :coding 'utf-8-unix
           :command `(,program "rpc" ,@deftool-rpc-arguments)
           :stderr (deftool-rpc-error-process connection)
           :filter (lambda (_ text) (deftool-rpc--receive connection text))
           :sentinel (lambda (process _)
                       (unless (process-live-p process)
                         (deftool-rpc--end connection)))))
    (condition-case problem
        (deftool-rpc-load connection (deftool-rpc-request connection "list"))
      ((error quit)
       (delete-process (deftool-rpc-process connection))
       (signal (car problem) (cdr problem))))
    (push connection deftool-rpc--connections)
    connection))

(defun deftool-rpc-load (connection result)
  "Store the tools of RESULT, a result of `list', in CONNECTION."
  (setf (deftool-rpc-tools connection) (append (plist-get result :tools) nil)))

(defun deftool-rpc-tool (connection name)
  "Return the description of the tool NAME of CONNECTION, or nil."
  (cl-find name (deftool-rpc-tools connection)
           :key (lambda (tool) (plist-get tool :name)) :test #'equal))

(defun deftool-rpc--end (connection)
  "Fail the pending requests of CONNECTION, whose server has ended."
  (setq deftool-rpc--connections (delq connection deftool-rpc--connections))
  (while (accept-process-output (deftool-rpc-error-process connection) 0.1))
  (let* ((text (string-remove-prefix "error: " (string-trim (deftool-rpc-errors connection))))
         (text (if (equal text "") "`deftool rpc' has ended" text)))
    (dolist (id (hash-table-keys (deftool-rpc-pending connection)))
      (with-demoted-errors "deftool: %S"
        (deftool-rpc--finish connection id nil (list :message text))))))

(defun deftool-rpc-disconnect ()
  "End the servers of all projects."
  (interactive)
  (dolist (connection deftool-rpc--connections)
    (delete-process (deftool-rpc-process connection))))

;;;; Messages

(defun deftool-rpc--receive (connection text)
  "Handle the messages of CONNECTION that end in TEXT."
  (push text (deftool-rpc-chunks connection))
  (when (string-search "\n" text)
    (let ((lines (split-string (apply #'concat (nreverse (deftool-rpc-chunks connection))) "\n")))
      (setf (deftool-rpc-chunks connection) (last lines))
      (dolist (line (butlast lines))
        (with-demoted-errors "deftool: %S"
          (deftool-rpc--handle connection (deftool-rpc--read line)))))))

(defun deftool-rpc--read (line)
  "Return the message in LINE.
A response that Emacs cannot read, such as a text with a null character
before Emacs 30, is an error for the request."
  (condition-case problem
      (deftool-rpc-parse line)
    (error
     (if (string-match "\\`{\"jsonrpc\":\"2.0\",\"id\":\\([0-9]+\\),\"result\":" line)
         `(:id ,(string-to-number (match-string 1 line))
           :error (:message ,(concat "Emacs cannot read the result: " (error-message-string problem))))
       (signal (car problem) (cdr problem))))))

(defun deftool-rpc-parse (text)
  "Parse TEXT as JSON."
  (json-parse-string text :object-type 'plist :null-object :null :false-object :json-false))

(defun deftool-rpc-serialize (value)
  "Return VALUE as JSON text."
  (let ((text (json-serialize value :null-object :null :false-object :json-false)))
    ;; Emacs 30 returns the bytes.
    (if (multibyte-string-p text) text (decode-coding-string text 'utf-8))))

(defun deftool-rpc--handle (connection message)
  "Handle MESSAGE of the server of CONNECTION."
  (let ((id (plist-get message :id))
        (method (plist-get message :method)))
    (if method
        (unless (run-hook-with-args-until-success
                 'deftool-rpc-message-functions connection (intern method) (plist-get message :params) id)
          (when id
            (deftool-rpc--write connection
              `(:id ,id :error (:code -32601 :message "Emacs does not support this method")))))
      (deftool-rpc--finish connection id (plist-get message :result) (plist-get message :error)))))

(defun deftool-rpc--finish (connection id result problem)
  "Pass RESULT and PROBLEM to the callback of the request ID of CONNECTION, once."
  (when-let ((callback (gethash id (deftool-rpc-pending connection))))
    (remhash id (deftool-rpc-pending connection))
    (funcall callback result problem)))

(defun deftool-rpc--write (connection message)
  "Send MESSAGE to the server of CONNECTION."
  (declare (indent 1))
  (process-send-string (deftool-rpc-process connection)
                       (concat (deftool-rpc-serialize `(:jsonrpc "2.0" ,@message)) "\n")))

(defun deftool-rpc-respond (connection id result)
  "Send RESULT as response to the request ID of the server of CONNECTION."
  (deftool-rpc--write connection `(:id ,id :result ,result)))

(defun deftool-rpc-send (connection method params callback)
  "Send a request for METHOD with PARAMS to the server of CONNECTION.
CALLBACK is called with the result and nil, or with nil and the error,
whose `:message' is for the user.  Return the ID of the request."
  (let ((id (cl-incf (deftool-rpc-last-id connection))))
    (puthash id callback (deftool-rpc-pending connection))
    (condition-case problem
        (deftool-rpc--write connection `(:id ,id :method ,method :params ,params))
      (error
       (unless (process-live-p (deftool-rpc-process connection))
         (deftool-rpc--end connection))
       (deftool-rpc--finish connection id nil (list :message (error-message-string problem))))
      (quit
       ;; The server may have received a part of the message.
       (delete-process (deftool-rpc-process connection))
       (signal 'quit nil)))
    id))

(defun deftool-rpc-request (connection method &rest params)
  "Request METHOD with PARAMS from the server of CONNECTION and return the result."
  (let (response)
    (deftool-rpc-send connection method params
                      (lambda (result problem) (setq response (list result problem))))
    ;; gptel calls tools in process sentinels, where Emacs ignores `C-g'.
    (let ((inhibit-quit nil))
      (while (not response)
        ;; If this names a process that has ended, Emacs calls no sentinel while its stderr is unread.
        (accept-process-output nil 0.1)))
    (when (cadr response)
      (error "%s" (plist-get (cadr response) :message)))
    (car response)))

(provide 'deftool-rpc)
;;; deftool-rpc.el ends here
