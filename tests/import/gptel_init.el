;; My settings.
(setq gptel-model 'x)
(llm-make-tool :function #'ignore :name "count_word" :description "Replaced by the next one." :args nil)
(use-package gptel :config
 (gptel-make-tool
  :name "count_word"
  :function (lambda (text word) (message "x"))
  :description (concat "Count how often " "a word occurs in a text.")
  :args (list '(:name "text" :type string :description "The text.")
              '(:name "word" :type string :description "The word."))
  :category "text"))
(gptel-make-tool :name "wait" :function #'my-wait :async t :description "Wait."
 :args '((:name "seconds" :type number :description "How long.")) :confirm t)
(gptel-make-tool :name "bad one" :function #'my-wait :description "Wait.")
;; Asks if the path is long.
(gptel-make-tool :name "ask" :function #'ignore :description "Ask first."
 :args '((:name "path" :type string :description "Which file.")) ; relative
 :confirm (lambda (path) (> (length path) 9)))
(gptel-make-tool :name "by_code" :function #'ignore :description (my-description) :args nil)
