;;; init-llm.el --- my LLM setup  -*- lexical-binding: t; -*-
;; weird (unbalanced in comment
(use-package gptel
	:ensure t
  :config
  (setq gptel-model   'gpt-4o   ) ; keep   me
  (gptel-make-tool
   :name "read_url"
   :description "Fetch and read the contents of a URL" ; trailing
   :args (list '(:name "url" :type "string" :description "The URL to read"))
   :category "web"
   :function #'my-read-url)
  (add-to-list 'gptel-tools
  (gptel-make-tool
   :name "grep"
   ;; the pattern
   ; single
   :args `((:name "pattern"
            :type string
            :description "Regex pattern to search in file contents.  Uses POSIX extended regexes.")
     ;;; three
           (:name "path" ; where
            :type string
            :optional t)

           ,(my-arg :foo 1)
           ,@more)
   :function (lambda (pattern &optional path)
		"Search for PATTERN (in PATH.
    Docstring line (with parens."
		(let* ((x 1)
		       (y "multi
   line"))
		  (foo x y))) ; done
   :confirm t)))

(setq my-tools
      (list
       (gptel-make-tool
        :function (lambda (buffer)
                    (with-current-buffer buffer
                      (buffer-string)))
        :name "read_buffer"
        :description "Return the contents of
an Emacs buffer (all of it)"
        :args (list '(:name "buffer" :type "string" :description "The name of the buffer to read"))
        :include t
        ;; the end
        )
       (llm-make-tool
        :function 'x
        :name "nested"
        :args '((:name "o"
                 :type object
                 :properties
                 (:a (:type object
                      :properties
                      (:b (:type array
                           :items (:type object
                                   :properties
                                   (:deep (:type string
                                           :description "A long description at depth."))
                                   :required ["deep"]))
                       :c (:type integer :minimum 0 :maximum 10)))
                  :name (:type string))
                 :required ["a"])))))
(llm-tool-collection-deftool read-file
  (:category "filesystem" :tags (filesystem editing) :confirm t :include t)
  ((path "Path to the file to read. Supports relative paths and '~'." :type string)
   &optional
   (limit "Lines." :type integer))
  "Read the contents of a file and return its content as a string."
  (with-temp-buffer
    (insert-file-contents (expand-file-name path))
    (buffer-string)))
(deftool
 :name "e"
 :args ((:name "k"
         :type string
         :enum ["alpha" "beta" "gamma" "delta" "epsilon" "zeta" "eta" "theta" "iota" "kappa"
                "lambda" "mu" "nu"]
         :description "x"))
 :foo [(:a 1) (:type null)])
