;;; deftool-chat.el --- Call tools and talk to workers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The deftool authors
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `deftool-call' calls a tool of the project and shows its result.
;; `deftool-run' sends a prompt to a worker of the project, and `deftool-chat'
;; opens an empty conversation.  The reply appears as it is received, with
;; the calls of tools.  Calls that need your approval have buttons.

;;; Code:

(require 'cl-lib)
(require 'deftool-rpc)

;;;; Calls

;;;###autoload
(defun deftool-call (tool arguments)
  "Call TOOL of the current project with ARGUMENTS and show the result.
ARGUMENTS is an object; interactively, ask for each argument."
  (interactive (deftool-chat--read-call))
  (let ((connection (deftool-rpc-connect (deftool-rpc-find-project))))
    (when (or (eq :json-false
                  (plist-get (deftool-rpc-request connection "needs_approval"
                                                  :tool tool :arguments arguments)
                             :needs_approval))
              (y-or-n-p (format "Call `%s' with %s? " tool (deftool-rpc-serialize arguments)))
              (user-error "Not called"))
      (deftool-rpc-send connection "call" `(:tool ,tool :arguments ,arguments :approved t)
                        (lambda (result problem)
                          (if problem
                              (message "deftool: %s" (plist-get problem :message))
                            (display-message-or-buffer (plist-get result :text) "*deftool result*")))))))

(defun deftool-chat--read-call ()
  "Ask for a tool of the current project and its arguments."
  (let* ((connection (deftool-rpc-connect (deftool-rpc-find-project)))
         (tools (deftool-rpc-request connection "list"))
         (_ (deftool-rpc-load connection tools))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (concat "  " (plist-get (deftool-rpc-tool connection name) :description)))))
         (names (mapcar (lambda (tool) (plist-get tool :name)) (deftool-rpc-tools connection)))
         (name (completing-read "Tool: " names nil t)))
    (list name (deftool-chat--read-arguments
                (plist-get (deftool-rpc-tool connection name) :parameters)))))

(defun deftool-chat--read-arguments (parameters)
  "Ask for the arguments of a tool with the schema PARAMETERS."
  (cl-loop for (key schema) on (plist-get parameters :properties) by #'cddr
           for name = (substring (symbol-name key) 1)
           for is-optional = (not (seq-contains-p (plist-get parameters :required) name))
           for prompt = (format "%s%s: " name (if is-optional " (optional)" ""))
           for values = (plist-get schema :enum)
           for text = (if (and values (cl-every #'stringp values))
                          (completing-read prompt (append values nil))
                        (read-string prompt))
           unless (and is-optional (equal text ""))
           append (list key (deftool-chat--argument text schema))))

(defun deftool-chat--argument (text schema)
  "Return the value that TEXT has in an argument with SCHEMA.
Text that is not JSON is a string, which the tool rejects if it expects
another type."
  (if (equal (plist-get schema :type) "string")
      text
    (condition-case nil (deftool-rpc-parse text) (error text))))

;;;; Conversations

(defvar deftool-chat--buffers (make-hash-table :test #'equal)
  "The buffer of each running request.")

(cl-defstruct (deftool-chat--question (:copier nil))
  "An open question about a call."
  (id nil :documentation "The ID of the server's request.")
  (connection nil :documentation "The connection to the server.")
  (params nil :documentation "The parameters of the request.")
  (start nil :documentation "The start of the buttons, or nil if they are not shown yet.")
  (end nil :documentation "The end of the buttons."))

(defvar deftool-chat--questions nil
  "The open questions of all conversations.")

(defvar-local deftool-chat--connection nil
  "The connection to the server of this conversation.")
(defvar-local deftool-chat--request nil
  "The ID of the running request, or t while it is submitted.")
(defvar-local deftool-chat--messages []
  "The conversation without the running request.")
(defvar-local deftool-chat--end nil
  "The end of the transcript, before the prompt.")
(defvar-local deftool-chat--input nil
  "The start of the input, after the prompt.")
(defvar-local deftool-chat--calls nil
  "The end of the line of each call of the running request, by ID.")
(defvar-local deftool-chat--project nil
  "The project of this conversation.")

(defmacro deftool-chat--in (buffer &rest body)
  "Evaluate BODY in BUFFER if it still exists."
  (declare (indent 1))
  `(when (buffer-live-p ,buffer)
     (with-current-buffer ,buffer ,@body)))

(defvar deftool-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'deftool-chat-send)
    (define-key map (kbd "C-c C-k") #'deftool-chat-cancel)
    (define-key map (kbd "TAB") #'forward-button)
    (define-key map (kbd "<backtab>") #'backward-button)
    map)
  "The keys of `deftool-chat-mode'.")

(define-derived-mode deftool-chat-mode text-mode "deftool-chat"
  "Major mode for a conversation with a worker.
Write a message at the end of the buffer and send it with
\\[deftool-chat-send].  \\[deftool-chat-cancel] stops the reply.

\\{deftool-chat-mode-map}"
  (setq mode-line-process '(deftool-chat--request " working"))
  (setq-local header-line-format
              (substitute-command-keys
               "\\<deftool-chat-mode-map>\\[deftool-chat-send] send, \\[deftool-chat-cancel] cancel, \\[forward-button] next button"))
  (add-hook 'kill-buffer-hook #'deftool-chat-cancel nil t)
  (add-hook 'deftool-rpc-message-functions #'deftool-chat--handle)
  (let ((inhibit-read-only t))
    (insert (propertize "> " 'read-only t 'front-sticky t 'rear-nonsticky t 'face 'minibuffer-prompt)))
  (setq deftool-chat--end (copy-marker (point-min) t)
        deftool-chat--input (copy-marker (point))))

;;;###autoload
(defun deftool-chat ()
  "Open a new conversation with a worker of the current project."
  (interactive)
  (let ((project (deftool-rpc-find-project)))
    (pop-to-buffer (generate-new-buffer
                    (format "*deftool: %s*" (file-name-nondirectory (directory-file-name project)))))
    (deftool-chat-mode)
    (setq default-directory project
          deftool-chat--project project)))

;;;###autoload
(defun deftool-run (prompt)
  "Send PROMPT to a worker of the current project in a new conversation."
  (interactive "sPrompt: ")
  (deftool-chat)
  (insert prompt)
  (deftool-chat-send))

(defun deftool-chat-send ()
  "Send the text after the prompt."
  (interactive)
  (let ((text (string-trim (buffer-substring-no-properties deftool-chat--input (point-max))))
        (buffer (current-buffer))
        (connection (deftool-rpc-connect deftool-chat--project)))
    (when deftool-chat--request
      (user-error "The reply is not complete"))
    (when (equal text "")
      (user-error "Write a message first"))
    (let ((messages (vconcat deftool-chat--messages `[(:role "user" :content ,text)])))
      (setq deftool-chat--connection connection
            deftool-chat--calls (make-hash-table :test #'equal)
            deftool-chat--request t)
      (delete-region deftool-chat--input (point-max))
      (deftool-chat--insert (concat "> " text "\n\n") 'bold)
      (deftool-rpc-send
       connection "submit" `(:messages ,messages)
       (lambda (result problem)
         (if (not (buffer-live-p buffer))
             (deftool-rpc-send connection "cancel" result #'ignore)
           (with-current-buffer buffer
             (if problem
                 (deftool-chat--finish problem)
               (deftool-chat--follow (plist-get result :request_id))))))))))

(defun deftool-chat--follow (request)
  "Show the events of REQUEST in this buffer, and then keep its conversation."
  (let ((buffer (current-buffer))
        (connection deftool-chat--connection))
    (setq deftool-chat--request request)
    (puthash request buffer deftool-chat--buffers)
    (deftool-rpc-send
     connection "events" `(:request_id ,request)
     (lambda (_ problem)
       (remhash request deftool-chat--buffers)
       (if problem
           (deftool-chat--in buffer (deftool-chat--finish problem))
         (deftool-rpc-send connection "result" `(:request_id ,request)
                           (lambda (result problem)
                             (deftool-chat--in buffer
                               (unless problem
                                 (setq deftool-chat--messages (plist-get result :messages)))
                               (deftool-chat--finish problem)))))))))

(defun deftool-chat--finish (problem)
  "End the running request.  PROBLEM is an error of the server, or nil."
  (setq deftool-chat--request nil)
  (when problem
    (deftool-chat--insert-line (plist-get problem :message) 'error))
  (deftool-chat--insert "\n\n")
  (force-mode-line-update))

(defun deftool-chat-cancel ()
  "Cancel the running request."
  (interactive)
  (when (stringp deftool-chat--request)
    (deftool-rpc-send deftool-chat--connection "cancel" `(:request_id ,deftool-chat--request) #'ignore)))

;;;; Transcript

(defun deftool-chat--insert (text &optional face)
  "Append TEXT with FACE to the transcript."
  (deftool-chat--insert-at deftool-chat--end (propertize text 'face face)))

(defun deftool-chat--insert-line (text &optional face)
  "Append TEXT with FACE to the transcript, on a line of its own."
  (let ((is-new (save-excursion (goto-char deftool-chat--end) (bolp))))
    (deftool-chat--insert (concat (unless is-new "\n") text) face)))

(defun deftool-chat--insert-at (position text)
  "Insert TEXT into the transcript at POSITION."
  (let ((inhibit-read-only t))
    (save-excursion
      (goto-char position)
      (insert (propertize text 'read-only t 'front-sticky t)))
    ;; Undo is for the input only.
    (setq buffer-undo-list nil)))

(defun deftool-chat--handle (connection method params id)
  "Handle METHOD with PARAMS of CONNECTION.
ID is the ID of the message if it is a request.  Return non-nil if the
message is for a conversation."
  (pcase method
    ('event
     (when-let ((buffer (gethash (plist-get params :request_id) deftool-chat--buffers)))
       (deftool-chat--in buffer
         (deftool-chat--show (plist-get params :event)))
       t))
    ('approve
     (when-let ((buffer (gethash (plist-get params :request_id) deftool-chat--buffers))
                (question (make-deftool-chat--question :id id :connection connection :params params)))
       (push question deftool-chat--questions)
       (deftool-chat--in buffer
         ;; Otherwise, the event of the call follows.
         (when (gethash (plist-get params :call_id) deftool-chat--calls)
           (deftool-chat--ask question)))
       t))
    ('$/cancelRequest
     (when-let ((question (cl-find-if (lambda (question)
                                        (and (equal (plist-get params :id) (deftool-chat--question-id question))
                                             (eq connection (deftool-chat--question-connection question))))
                                      deftool-chat--questions)))
       (deftool-chat--close question "canceled")
       t))
    ((or 'log 'progress)
     (message "%s: %s" (plist-get params :tool) (plist-get params :text))
     t)))

(defun deftool-chat--show (event)
  "Append EVENT to the transcript."
  (let ((text (plist-get event :text)))
    (pcase (plist-get event :type)
      ("text" (deftool-chat--insert text))
      ("reasoning" (deftool-chat--insert text 'shadow))
      ("tool_call" (deftool-chat--show-call event))
      ("tool_finished" (deftool-chat--show-result event))
      ("signal" (deftool-chat--insert-line
                 (format "%s %s\n" (plist-get event :tool_name)
                         (deftool-rpc-serialize (plist-get event :arguments)))
                 'font-lock-function-name-face))
      ("retry" (deftool-chat--insert-line (concat "retry: " (plist-get event :detail) "\n") 'warning))
      ("warning" (deftool-chat--insert-line (concat "warning: " (plist-get event :message) "\n") 'warning))
      ("reloaded" (deftool-chat--insert-line (concat "reloaded: " (plist-get event :detail) "\n") 'shadow))
      ("finished"
       (unless (equal (plist-get event :state) "completed")
         (deftool-chat--insert-line
          (format "%s: %s" (plist-get event :state)
                  (or (plist-get event :detail) (plist-get event :fail_reason) ""))
          'error))))))

(defun deftool-chat--show-call (event)
  "Append the call of EVENT to the transcript, with a button for its result."
  (deftool-chat--insert-line "")
  (deftool-chat--insert-button
   (format "%s %s" (plist-get event :name) (deftool-rpc-serialize (plist-get event :arguments)))
   #'deftool-chat--toggle)
  (puthash (plist-get event :id) (copy-marker deftool-chat--end) deftool-chat--calls)
  (deftool-chat--insert "\n")
  (dolist (question deftool-chat--questions)
    (when (equal (plist-get event :id)
                 (plist-get (deftool-chat--question-params question) :call_id))
      (deftool-chat--ask question))))

(defun deftool-chat--show-result (event)
  "Add the result of EVENT to its call, hidden, or its error."
  (let* ((line (gethash (plist-get event :id) deftool-chat--calls))
         (is-ok (eq t (plist-get event :ok)))
         (result (plist-get event :result)))
    (deftool-chat--insert-at
     line (if is-ok
              (propertize " ok" 'face 'success)
            (propertize (concat " failed: " (plist-get (plist-get event :error) :message)) 'face 'error)))
    (when is-ok
      (let ((end (save-excursion (goto-char line) (line-end-position)))
            (text (concat "\n" (if (stringp result) result (deftool-rpc-serialize result)))))
        (deftool-chat--insert-at end (propertize text 'face 'shadow))
        (overlay-put (make-overlay end (+ end (length text))) 'invisible t)))))

(defun deftool-chat--toggle (button)
  "Show or hide the result of the call of BUTTON."
  (let ((end (save-excursion (goto-char (button-end button)) (line-end-position))))
    (dolist (overlay (overlays-in end (1+ end)))
      (overlay-put overlay 'invisible (not (overlay-get overlay 'invisible))))))

;;;; Approvals

(defun deftool-chat--ask (question)
  "Append QUESTION to the transcript, with buttons."
  (let ((params (deftool-chat--question-params question)))
    (deftool-chat--insert-line (concat "Call " (plist-get params :text) "? ") 'bold)
    (setf (deftool-chat--question-start question) (copy-marker deftool-chat--end))
    (deftool-chat--insert-button
     "[Allow]" (lambda (_) (deftool-chat--answer question '(:answer "allowed"))))
    (deftool-chat--insert " ")
    (deftool-chat--insert-button
     "[Refuse]" (lambda (_)
                  (let ((reason (read-string "Reason for the model (optional): ")))
                    (deftool-chat--answer question `(:answer "refused" :reason ,reason)))))
    (setf (deftool-chat--question-end question) (copy-marker deftool-chat--end))
    (deftool-chat--insert "\n")
    (message "`%s' needs your approval" (plist-get params :tool))))

(defun deftool-chat--insert-button (label action)
  "Append a button with LABEL and ACTION to the transcript."
  (let ((start (marker-position deftool-chat--end))
        (inhibit-read-only t))
    (deftool-chat--insert label)
    (make-text-button start deftool-chat--end 'action action)))

(defun deftool-chat--answer (question answer)
  "Respond to QUESTION with ANSWER."
  (deftool-chat--close question (plist-get answer :answer))
  (deftool-rpc-respond (deftool-chat--question-connection question)
                       (deftool-chat--question-id question) answer))

(defun deftool-chat--close (question text)
  "Replace the buttons of QUESTION by TEXT."
  (setq deftool-chat--questions (delq question deftool-chat--questions))
  (when-let ((start (deftool-chat--question-start question)))
    (deftool-chat--in (marker-buffer start)
      (let ((inhibit-read-only t))
        (delete-region start (deftool-chat--question-end question))
        (deftool-chat--insert-at start text)))))

(provide 'deftool-chat)
;;; deftool-chat.el ends here
