;; As they stood in an Emacs configuration; nothing was changed. The scripts have the functions' place.

(gptel-make-tool
 :name "count_word"
 :function (lambda (text word)
             (with-temp-buffer
               (insert text)
               (let ((case-fold-search t))
                 (count-matches (concat "\\b" (regexp-quote word) "\\b") (point-min) (point-max)))))
 :description "Count how often a word stands in a text."
 :args (list '(:name "text" :type string :description "The text.")
             '(:name "word" :type string :description "The word, in upper or lower case."))
 :category "text")

(gptel-make-tool
 :name "wait"
 :function (lambda (callback seconds &optional note)
             (run-at-time seconds nil callback (or note "time is up")))
 :description "Wait a while, then go on."
 :args (list '(:name "seconds" :type number :minimum 0 :maximum 30 :description "How long.")
             '(:name "note" :type string :optional t :description "What to be told then."))
 :async t
 :category "time")
