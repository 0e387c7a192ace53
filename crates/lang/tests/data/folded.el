;;; Emacs Lisp forms with the values that Emacs 28 prints for them. `not folded`: deftool does not compute the value.

(defconst my-dir "~/notes" "Where notes are.")
(defvar my-kinds '("a" "b"))
(setq my-word "w" my-number 7)
(defconst my-both (concat my-dir my-word))
(defvar my-pairs '((a . 1) (b . "x")))
(concat my-dir "/" my-both)
;; => "~/notes/~/notesw"
(vconcat my-kinds [1] "é")
;; => ["a" "b" 1 233]
(append my-kinds [c] "d" '(e . f))
;; => ("a" "b" c 100 e . f)
(list my-number (1+ my-number))
;; not folded
(if nil "a" "b" "c")
;; => "c"
(if '() "a")
;; => nil
(if 0 "a" "b")
;; => "a"
(or nil my-word "x")
;; => "w"
(or)
;; => nil
(and)
;; => t
(and 1 nil 2)
;; => nil
(and "a" "b")
;; => "b"
(progn)
;; => nil
(progn "a" "b")
;; => "b"
(let ((a "x") (b "y") c) (list a b c))
;; => ("x" "y" nil)
(let ((v "x")) (let ((a v) (v "y")) (concat a v)))
;; => "xy"
(let* ((a "x") (b (concat a "y"))) "ignored" (concat a b))
;; => "xxy"
(let nil 1)
;; => 1
(let ((a)) a)
;; => nil
(eval-when-compile (concat "a" "b"))
;; => "ab"
(eval-and-compile '(a b))
;; => (a b)
(purecopy "x")
;; => "x"
(identity 'x)
;; => x
(upcase "abc")
;; => "ABC"
(downcase "ABC")
;; => "abc"
(upcase "é")
;; not folded
(string-trim " \t\n a b \r\n")
;; => "a b"
(string-trim-left "  a ")
;; => "a "
(string-trim-right "  a ")
;; => "  a"
(string-trim "xax" "x")
;; not folded
(substring "abcdef" 2)
;; => "cdef"
(substring "abcdef" -3 -1)
;; => "de"
(substring "abcdef" 1 nil)
;; => "bcdef"
(substring "aéc" 1 2)
;; => "é"
(substring "abc" 4)
;; not folded
(substring "abc" 2 1)
;; not folded
(substring "abc" -4)
;; not folded
(substring "" 0)
;; => ""
(string-join '("a" "b") ", ")
;; => "a, b"
(string-join '("a" "b"))
;; => "ab"
(string-join nil "x")
;; => ""
(string-join (list "a" (upcase "b")) "/")
;; => "a/B"
(mapconcat #'identity '("a" "b") ", ")
;; => "a, b"
(mapconcat 'identity ["a" "b"] nil)
;; => "ab"
(mapconcat #'symbol-name '(a :b nil t) "|")
;; => "a|:b|nil|t"
(mapconcat #'upcase my-kinds "|")
;; => "A|B"
(mapconcat (lambda (x) (format "- %s" x)) '(a "b" (c . d) [1 2.0]) "\n")
;; => "- a\n- b\n- (c . d)\n- [1 2.0]"
(mapconcat (lambda (c) (format "%d" c)) "ab" " ")
;; => "97 98"
(mapconcat (lambda (kind) (concat my-word kind)) my-kinds ", ")
;; => "wa, wb"
(mapconcat #'number-to-string '(1 2.5) " ")
;; => "1 2.5"
(mapcar #'upcase '("a" "b"))
;; => ("A" "B")
(mapcar (lambda (x) (list x 1)) [a b])
;; => ((a 1) (b 1))
(number-to-string 1e3)
;; => "1000.0"
(symbol-name 'foo)
;; => "foo"
(format "%s" '(a "b" 1 2.5 nil t :k ?c))
;; => "(a b 1 2.5 nil t :k 99)"
(format "%S" '(a "b\"" 1))
;; => "(a \"b\\\"\" 1)"
(format "%s" '(quote a))
;; => "'a"
(format "%s" '(function a))
;; => "#'a"
(format "%S" '(quote a b))
;; => "(quote a b)"
(format "%s" [a [b]])
;; => "[a [b]]"
(format "%s" '((a . 1) (b . "x")))
;; => "((a . 1) (b . x))"
(format "%S" '((a . 1) (b c . "x")))
;; => "((a . 1) (b c . \"x\"))"
(format "%s %s" my-pairs my-kinds)
;; => "((a . 1) (b . x)) (a b)"
(format "%-8s|" '(a))
;; => "(a)     |"
(format "%.3s" '(abc))
;; => "(ab"
(concat "a" '(?b ?c) [?d])
;; => "abcd"
(mapconcat (lambda (x) (let ((y (upcase x))) (concat x y))) '("a" "b") "")
;; => "aAbB"
`(a ,my-word ,@my-kinds [,my-number])
;; => (a "w" "a" "b" [7])
(cons my-word my-kinds)
;; => ("w" "a" "b")
(vector my-word)
;; => ["w"]
(capitalize "ab")
;; not folded
(getenv "HOME")
;; not folded
(concat my-dir unknown)
;; not folded
(string-join my-pairs ",")
;; not folded
(setq my-twice 1)
(setq my-twice 2)
(list my-twice)
;; not folded
(defvar my-later "a")
(list my-later)
;; not folded
(defvar my-pushed nil)
(list my-pushed)
;; not folded
(defvar my-shadowed 1)
(list my-shadowed)
;; not folded
(defun my-function (my-shadowed) (setq my-later my-shadowed) (push 1 my-pushed) (add-to-list 'my-quoted 1))
(defvar my-quoted nil)
(list my-quoted)
;; not folded
(defconst my-loop (list my-other-loop))
(defconst my-other-loop (list my-loop))
(list my-loop)
;; not folded
(defvar my-item "a")
(list my-item)
;; not folded
(defun my-other-function () (dolist (my-item '(1)) (grep my-dir my-item)))
(defcustom my-option "a" "An option." :type 'string)
(list my-option)
;; not folded
