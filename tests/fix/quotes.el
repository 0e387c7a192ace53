;;; init.el -*- lexical-binding: t -*-
(use-package gptel
  :config
  (gptel-make-tool
   :name "evaluated"
   :description "A bare symbol would be a variable here."
   :args (list (list :name "a" :type "string" :description "A.")
               '(:name "b" :type "string" :description "B.")
               `(:name "c" :type ,"string" :description "C.")
               (list :name "d" :type ''string :required t :description "D.")
               (list :name "e" :enum ["a" "b"] :description "E.")
               (list :name "f" :type 'array :items "string" :description "F.")
               (list :name "g" :type 'array :items '"string" :description "G.")
               `(:name "h" :type array :items ,"string" :description "H.")
               '(:name "i" :enum ["a" "b"] :description "I.")
               (list :name "j" :type 'string :optional 1 :description "J."))
   :function #'ignore))
