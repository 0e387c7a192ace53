(gptel-make-tool
 :name "roll"
 :function #'my-roll
 :description "Roll a die."
 :args (list '(:name "sides" :type int :description "From 2 to 100.")))
