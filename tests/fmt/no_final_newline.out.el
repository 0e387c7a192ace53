;; no line end at the end
(gptel-make-tool
 :name "x")