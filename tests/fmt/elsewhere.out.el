;; Only tool forms are laid out.
(defun   not-a-tool (x)
      (list   x (deftool)   (deftool name (args) "Somebody's macro."
 t)))
(let ((llm-tool (foo   1))) llm-tool)
'(:name "data"   :type string)
(progn (defexit
        :name "a"
        :description "b") (defexit
                           :name "second"
                           :description "on the line of the first"))	;; tab kept   
(with-eval-after-load 'gptel   (when t (setq x (mapcar #'f (list (gptel-make-tool
                                                                  :name "deep"
                                                                  :description "d"
                                                                  :args nil))))))
