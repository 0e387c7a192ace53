;;; init.el -*- lexical-binding: t -*-
(use-package gptel
  :config
  (gptel-make-tool
   :name "evaluated"
   :description "A bare symbol would be a variable here."
   :args (list (list :name "a" :type "string" :description "A.")
               '(:name "b" :type "string" :description "B.")
               `(:name "c" :type ,"string" :description "C.")
               (list :name "d" :type ''string :required t :description "D."))
   :function #'ignore))
