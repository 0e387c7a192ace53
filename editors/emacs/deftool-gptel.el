;;; deftool-gptel.el --- Use the tools of deftool projects in gptel  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The deftool authors
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `deftool-gptel-connect' offers the tools of a project in gptel:
;;
;;   (setq gptel-tools (deftool-gptel-connect "~/my-tools"))
;;
;; and your tools for all projects.  A folder that is not in a project, such
;; as "~/", has only these.
;;
;; The tools run in `deftool rpc', so Emacs does not wait for them.  When a
;; file of the project is saved, the tools in gptel change, too.

;;; Code:

(require 'cl-lib)
(require 'deftool-rpc)

(declare-function gptel-make-tool "gptel-request")
(declare-function gptel-tool-name "gptel-request")
(defvar gptel--known-tools)
(defvar gptel-tools)

(defvar deftool-gptel--tools nil
  "The gptel tools of each project, as an alist.")

;;;###autoload
(defun deftool-gptel-connect (folder)
  "Offer the tools of the project in FOLDER in gptel, and return them."
  (interactive "DProject: ")
  (require 'gptel)
  (add-hook 'deftool-rpc-message-functions #'deftool-gptel--handle)
  (let ((connection (deftool-rpc-connect folder)))
    (deftool-gptel--update connection)
    (alist-get (deftool-rpc-project connection) deftool-gptel--tools nil nil #'equal)))

(defun deftool-gptel--handle (connection method params _id)
  "Load the tools of CONNECTION again if METHOD with PARAMS reports a reload.
Say what changed, or what is broken and keeps its last good version."
  (when (and (eq method 'reloaded)
             (assoc (deftool-rpc-project connection) deftool-gptel--tools))
    (let ((problem (plist-get params :error)))
      (message "deftool: %s" (or problem (plist-get params :changes)))
      (unless problem
        (deftool-rpc-send connection "list" nil
                          (lambda (result problem)
                            (unless problem
                              (deftool-rpc-load connection result)
                              (deftool-gptel--update connection))))))
    t))

;;;; Definitions

(defun deftool-gptel--update (connection)
  "Make the tools in gptel equal to those of CONNECTION."
  (let* ((project (deftool-rpc-project connection))
         (old (alist-get project deftool-gptel--tools nil nil #'equal))
         ;; Only a worker has a use for exit tools.
         (offered (cl-remove "exit" (deftool-rpc-tools connection)
                             :key (lambda (tool) (plist-get tool :kind)) :test #'equal))
         (new (mapcar (lambda (tool) (deftool-gptel--define project tool old)) offered)))
    (mapc #'deftool-gptel--remove (cl-set-difference old new))
    (setf (alist-get project deftool-gptel--tools nil nil #'equal) new)))

(defun deftool-gptel--define (project tool old)
  "Define TOOL of PROJECT in gptel and return it.
If a tool in OLD has the same name, change this tool, because buffers
refer to it."
  (let* ((name (plist-get tool :name))
         (category (or (plist-get tool :category) "deftool"))
         (arguments (deftool-gptel--arguments (plist-get tool :parameters)))
         (names (mapcar (lambda (argument) (plist-get argument :name)) arguments))
         (known (cl-find name old :key #'gptel-tool-name :test #'equal)))
    (when known
      (deftool-gptel--unregister known))
    (let ((new (gptel-make-tool
                :name name
                :description (plist-get tool :description)
                :category category
                :args arguments
                :async t
                :function (lambda (callback &rest values)
                            (deftool-gptel--call project name (cl-mapcar #'cons names values) callback))
                :confirm (pcase (plist-get tool :confirm)
                           ("always" t)
                           ("sometimes"
                            (lambda (&rest values)
                              (deftool-gptel--needs-approval
                               project name (cl-mapcar #'cons names values))))))))
      (if (not known)
          new
        (dotimes (slot (length new))
          (aset known slot (aref new slot)))
        (setf (alist-get name (alist-get category gptel--known-tools nil nil #'equal) nil nil #'equal)
              known)))))

(defun deftool-gptel--arguments (parameters)
  "Return the arguments in the schema PARAMETERS, in the form of gptel."
  (let ((required (plist-get parameters :required)))
    (cl-loop for (key schema) on (plist-get parameters :properties) by #'cddr
             for name = (substring (symbol-name key) 1)
             collect `(:name ,name ,@(copy-tree schema t)
                       ,@(unless (seq-contains-p required name) '(:optional t))))))

(defun deftool-gptel--unregister (tool)
  "Remove TOOL from the menu of gptel."
  (dolist (category gptel--known-tools)
    (setcdr category (cl-delete tool (cdr category) :key #'cdr)))
  (setq gptel--known-tools (cl-delete nil gptel--known-tools :key #'cdr)))

(defun deftool-gptel--remove (tool)
  "Remove TOOL from gptel."
  (deftool-gptel--unregister tool)
  (set-default 'gptel-tools (remq tool (default-value 'gptel-tools)))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (local-variable-p 'gptel-tools)
        (setq gptel-tools (remq tool gptel-tools))))))

;;;; Calls

(defun deftool-gptel-call (callback tool &rest arguments)
  "Call TOOL and pass its result to CALLBACK, as text.
ARGUMENTS are names and values in turn.  A value of nil is an omitted
argument.  The output of `deftool compile --target gptel' calls this
function."
  (deftool-gptel--call nil tool (deftool-gptel--pairs arguments) callback))

(defun deftool-gptel-needs-approval (tool &rest arguments)
  "Return whether a call of TOOL needs the user's approval.
ARGUMENTS are those of `deftool-gptel-call'."
  (deftool-gptel--needs-approval nil tool (deftool-gptel--pairs arguments)))

(defun deftool-gptel--pairs (arguments)
  "Return the names and values in ARGUMENTS as an alist."
  (cl-loop for (name value) on arguments by #'cddr collect (cons name value)))

(defun deftool-gptel--project-of (tool)
  "Return the project in which TOOL runs.
This is `deftool-project', a connected project that has TOOL, or the
project that contains the current buffer."
  (let ((connection (unless deftool-project
                      (cl-find-if (lambda (connection) (deftool-rpc-tool connection tool))
                                  deftool-rpc--connections))))
    (if connection (deftool-rpc-project connection) (deftool-rpc-find-project))))

(defun deftool-gptel--call (project tool arguments callback)
  "Call TOOL of PROJECT with ARGUMENTS, an alist, and pass the text to CALLBACK.
If PROJECT is nil, find it."
  ;; gptel waits for the callback, so every error has to reach it, once.
  (let ((finish (lambda (text)
                  (when callback
                    (with-demoted-errors "deftool: %S"
                      (funcall (prog1 callback (setq callback nil)) text))))))
    (condition-case problem
        (let ((connection (deftool-rpc-connect (or project (deftool-gptel--project-of tool)))))
          (deftool-rpc-send
           connection "call"
           ;; gptel has asked the user.
           `(:tool ,tool :arguments ,(deftool-gptel--object connection tool arguments) :approved t)
           (lambda (result problem)
             (funcall finish (if problem
                                 (concat "Error: " (plist-get problem :message))
                               (plist-get result :text))))))
      (error (funcall finish (concat "Error: " (error-message-string problem))))
      (quit (funcall finish "Error: the user canceled the call")))))

(defun deftool-gptel--needs-approval (project tool arguments)
  "Return whether a call of TOOL of PROJECT with ARGUMENTS needs approval.
If PROJECT is nil, find it.  If it cannot be asked, the user is."
  (condition-case nil
      (let ((connection (deftool-rpc-connect (or project (deftool-gptel--project-of tool)))))
        (eq t (plist-get (deftool-rpc-request
                          connection "needs_approval"
                          :tool tool :arguments (deftool-gptel--object connection tool arguments))
                         :needs_approval)))
    ((error quit) t)))

(defun deftool-gptel--object (connection tool arguments)
  "Return ARGUMENTS, an alist, as JSON object for TOOL of CONNECTION.
In gptel, nil is a missing argument, null or an empty object, so the
schema decides."
  (let* ((parameters (plist-get (deftool-rpc-tool connection tool) :parameters))
         (required (plist-get parameters :required)))
    (cl-loop for (name . value) in arguments
             for key = (intern (concat ":" name))
             for schema = (plist-get (plist-get parameters :properties) key)
             when (or value (and (seq-contains-p required name)
                                 (or (deftool-gptel--allows schema "object")
                                     (deftool-gptel--allows schema "null"))))
             append (list key (deftool-gptel--value value schema)))))

(defun deftool-gptel--value (value schema)
  "Return the JSON value for VALUE, an argument or a part of one, by SCHEMA."
  (cond ((null value)
         (if (and (deftool-gptel--allows schema "object") (not (deftool-gptel--allows schema "null")))
             nil
           :null))
        ((vectorp value)
         (vconcat (mapcar (lambda (item) (deftool-gptel--value item (plist-get schema :items))) value)))
        ((consp value)
         (cl-loop for (key item) on value by #'cddr
                  append (list key (deftool-gptel--value
                                    item (plist-get (plist-get schema :properties) key)))))
        (t value)))

(defun deftool-gptel--allows (schema type)
  "Return whether SCHEMA allows values of TYPE."
  (let ((types (plist-get schema :type)))
    (if (vectorp types) (seq-contains-p types type) (equal types type))))

(provide 'deftool-gptel)
;;; deftool-gptel.el ends here
