(+ 0 0) => 0
(+ 1 1.5) => 2.5
(+ -1 -9223372036854775808) => !java.lang.ArithmeticException
(+ 3 2) => 5
(+ -7 1/2) => -13/2
(+ 7 ##Inf) => ##Inf
(+ 1.5 7) => 8.5
(+ -2.5 100N) => 97.5
(+ 1/2 1) => 3/2
(+ -3/4 -2.5) => -3.25
(+ 9/2 1e10) => 1.00000000045E10
(+ 9223372036854775807 3) => !java.lang.ArithmeticException
(+ -9223372036854775808 -3/4) => -36893488147419103235/4
(+ 1e10 ##NaN) => ##NaN
(+ ##Inf 10) => ##Inf
(+ ##NaN 9223372036854775807) => ##NaN
(- 1 -1) => 2
(- -1 0.0) => -1.0
(- 2 1e-5) => 1.99999
(- -7 -7) => 0
(- 7 9/2) => 5/2
(- 1.5 0) => 1.5
(- -2.5 1.5) => -4.0
(- 0.0 -9223372036854775808) => 9.223372036854776E18
(- -3/4 2) => -11/4
(- 9/2 1/2) => 4N
(- 100N ##Inf) => ##-Inf
(- -9223372036854775808 7) => !java.lang.ArithmeticException
(- 1e10 100N) => 9.9999999E9
(- ##Inf 1) => ##Inf
(- ##NaN -2.5) => ##NaN
(* 0 1e10) => 0.0
(* -1 3) => -3
(* 2 -3/4) => -3/2
(* 3 ##NaN) => ##NaN
(* 7 10) => 70
(* 10 9223372036854775807) => !java.lang.ArithmeticException
(* -2.5 -1) => 2.5
(* 0.0 0.0) => 0.0
(* 1/2 1e-5) => 5.0E-6
(* 9/2 -7) => -63/2
(* 100N 9/2) => 450N
(* -9223372036854775808 0) => 0
(* 1e10 1.5) => 1.5E10
(* 1e-5 -9223372036854775808) => -9.223372036854777E13
(* ##NaN 2) => ##NaN
(/ 0 1/2) => 0N
(/ 1 ##Inf) => 0.0
(/ 2 7) => 2/7
(/ 3 100N) => 3/100
(/ 7 1) => 7
(/ 10 -2.5) => -4.0
(/ 1.5 1e10) => 1.5E-10
(/ 0.0 3) => 0.0
(/ 1/2 -3/4) => -2/3
(/ -3/4 ##NaN) => ##NaN
(/ 100N 10) => 10N
(/ 9223372036854775807 9223372036854775807) => 1
(/ 1e10 -1) => -1.0E10
(/ ##Inf 1e-5) => ##Inf
(quot 0 -7) => 0
(quot 1 9/2) => 0N
(quot 2 0) => !java.lang.ArithmeticException
(quot 3 1.5) => 2.0
(quot -7 -9223372036854775808) => 0
(quot 10 2) => 5
(quot 1.5 1/2) => 3.0
(quot -2.5 ##Inf) => 0.0
(quot 1/2 7) => 0N
(quot -3/4 100N) => 0N
(quot 100N 1) => 100N
(quot 9223372036854775807 -2.5) => -3.6893488147419105E18
(quot -9223372036854775808 1e10) => -9.22337203E8
(quot 1e-5 3) => 0.0
(quot ##Inf -3/4) => !java.lang.NumberFormatException
(quot ##NaN ##NaN) => !java.lang.NumberFormatException
(rem 1 10) => 1
(rem -1 9223372036854775807) => -1
(rem 3 -1) => 0
(rem -7 0.0) => !java.lang.ArithmeticException
(rem 7 1e-5) => -8.881784197001252E-16
(rem 1.5 -7) => 1.5
(rem -2.5 9/2) => -2.5
(rem 1/2 0) => !java.lang.ArithmeticException
(rem -3/4 1.5) => -0.75
(rem 9/2 -9223372036854775808) => 9/2
(rem 9223372036854775807 2) => 1
(rem -9223372036854775808 1/2) => 0N
(rem 1e10 ##Inf) => ##NaN
(rem ##Inf 7) => !java.lang.NumberFormatException
(rem ##NaN 100N) => !java.lang.NumberFormatException
(mod 1 1) => 0
(mod -1 -2.5) => -1.0
(mod 2 1e10) => 2.0
(mod -7 3) => 2
(mod 7 -3/4) => -1/2
(mod 10 ##NaN) => !java.lang.NumberFormatException
(mod -2.5 10) => 7.5
(mod 0.0 9223372036854775807) => 0.0
(mod -3/4 -1) => -3/4
(mod 9/2 0.0) => !java.lang.ArithmeticException
(mod 100N 1e-5) => -1.4210854715202004E-14
(mod -9223372036854775808 -7) => -1
(mod 1e10 9/2) => 1.0
(mod ##Inf 0) => !java.lang.ArithmeticException
(mod ##NaN 1.5) => !java.lang.NumberFormatException
(max 0 -9223372036854775808) => 0
(max -1 2) => 2
(max 2 1/2) => 2
(max 3 ##Inf) => ##Inf
(max 7 7) => 7
(max 10 100N) => 100N
(max -2.5 1) => 1
(max 0.0 -2.5) => 0.0
(max 1/2 1e10) => 1.0E10
(max 9/2 3) => 9/2
(max 100N -3/4) => 100N
(max 9223372036854775807 ##NaN) => ##NaN
(max 1e10 10) => 1.0E10
(max 1e-5 9223372036854775807) => 9223372036854775807
(max ##NaN -1) => ##NaN
(min 1 1e-5) => 1.0E-5
(min 2 -7) => -7
(min 3 9/2) => 3
(min 7 0) => 0
(min 10 1.5) => 1.5
(min 1.5 -9223372036854775808) => -9223372036854775808
(min 0.0 2) => 0.0
(min 1/2 1/2) => 1/2
(min -3/4 ##Inf) => -3/4
(min 100N 7) => 7
(min 9223372036854775807 100N) => 100N
(min 1e10 1) => 1
(min 1e-5 -2.5) => -2.5
(min ##Inf 1e10) => 1.0E10
(< 0 3) => true
(< 1 -3/4) => false
(< -1 ##NaN) => false
(< 3 10) => true
(< -7 9223372036854775807) => true
(< 10 -1) => false
(< 1.5 0.0) => false
(< -2.5 1e-5) => true
(< 1/2 -7) => false
(< -3/4 9/2) => true
(< 100N 0) => false
(< 9223372036854775807 1.5) => false
(< -9223372036854775808 -9223372036854775808) => false
(< 1e-5 2) => true
(< ##Inf 1/2) => false
(< ##NaN ##Inf) => false
(<= 1 7) => true
(<= -1 100N) => true
(<= 3 1) => false
(<= -7 -2.5) => true
(<= 7 1e10) => true
(<= 1.5 3) => true
(<= -2.5 -3/4) => true
(<= 0.0 ##NaN) => false
(<= -3/4 10) => true
(<= 9/2 9223372036854775807) => true
(<= 9223372036854775807 -1) => false
(<= -9223372036854775808 0.0) => true
(<= 1e10 1e-5) => false
(<= ##Inf -7) => false
(<= ##NaN 9/2) => false
(> 1 0) => true
(> -1 1.5) => false
(> 2 -9223372036854775808) => true
(> -7 2) => false
(> 7 1/2) => true
(> 10 ##Inf) => false
(> -2.5 7) => false
(> 0.0 100N) => false
(> -3/4 1) => false
(> 9/2 -2.5) => true
(> 100N 1e10) => false
(> -9223372036854775808 3) => false
(> 1e10 -3/4) => true
(> 1e-5 ##NaN) => false
(> ##NaN 10) => false
(>= 0 9223372036854775807) => false
(>= -1 -1) => true
(>= 2 0.0) => true
(>= 3 1e-5) => true
(>= 7 -7) => true
(>= 10 9/2) => true
(>= -2.5 0) => false
(>= 0.0 1.5) => false
(>= 1/2 -9223372036854775808) => true
(>= 9/2 2) => true
(>= 100N 1/2) => true
(>= 9223372036854775807 ##Inf) => false
(>= 1e10 7) => true
(>= 1e-5 100N) => false
(>= ##NaN 1) => false
(== 0 -2.5) => false
(== 1 1e10) => false
(== 2 3) => false
(== 3 -3/4) => false
(== -7 ##NaN) => false
(== 10 10) => true
(== 1.5 9223372036854775807) => false
(== 0.0 -1) => false
(== 1/2 0.0) => false
(== -3/4 1e-5) => false
(== 100N -7) => false
(== 9223372036854775807 9/2) => false
(== 1e10 0) => false
(== 1e-5 1.5) => false
(== ##Inf -9223372036854775808) => false
(= 0 2) => false
(= 1 1/2) => false
(= -1 ##Inf) => false
(= 3 7) => false
(= -7 100N) => false
(= 10 1) => false
(= 1.5 -2.5) => false
(= -2.5 1e10) => false
(= 1/2 3) => false
(= -3/4 -3/4) => true
(= 9/2 ##NaN) => false
(= 9223372036854775807 10) => false
(= -9223372036854775808 9223372036854775807) => false
(= 1e-5 -1) => false
(= ##Inf 0.0) => false
(= ##NaN 1e-5) => false
(compare 1 -7) => 1
(compare -1 9/2) => -1
(compare 3 0) => 1
(compare -7 1.5) => -1
(compare 7 -9223372036854775808) => 1
(compare 1.5 2) => -1
(compare -2.5 1/2) => -1
(compare 0.0 ##Inf) => -1
(compare -3/4 7) => -1
(compare 9/2 100N) => -1
(compare 9223372036854775807 1) => 1
(compare -9223372036854775808 -2.5) => -1
(compare 1e10 1e10) => 0
(compare ##Inf 3) => 1
(compare ##NaN -3/4) => 0
(inc ##NaN) => ##NaN
(dec \a) => !java.lang.ClassCastException
(/ 2) => 1/2
(abs 10) => 10
(zero? 1/2) => false
(pos? 9223372036854775807) => true
(neg? ##Inf) => false
(even? :k) => !java.lang.IllegalArgumentException
(integer? -1) => true
(int? 7) => true
(float? 0.0) => true
(double? 100N) => false
(ratio? 1e-5) => false
(rational? "a") => false
(long 1) => 1
(int -7) => -7
(double -2.5) => -2.5
(float 9/2) => 4.5
(str 1e10) => "1.0E10"
(pr-str nil) => "nil"
(hash 0) => 0
(numerator 3) => !java.lang.ClassCastException
(denominator 1.5) => !java.lang.ClassCastException
(rationalize -3/4) => -3/4
(class -9223372036854775808) => java.lang.Long
(Math/abs ##NaN) => ##NaN
(Math/floor \a) => !java.lang.ClassCastException
(Math/sqrt 10) => 3.1622776601683795
(identity 1/2) => 1/2
(boolean 9223372036854775807) => true
(nat-int? ##Inf) => false
(pos-int? :k) => false
(byte -1) => -1
(short 7) => 7
(bit-not 0.0) => !java.lang.IllegalArgumentException
(+' 100N) => 100N
(inc' 1e-5) => 1.00001
(num 1) => 1
(NaN? -7) => false
(infinite? -2.5) => false
(seq (range 5)) => (0 1 2 3 4)
(second nil) => nil
(rest {:a 1 :b 2 :c nil}) => ([:b 2] [:c nil])
(next (list nil 1)) => (1)
(butlast [3 1 2 3 1]) => (3 1 2 3)
(ffirst "abc") => !java.lang.IllegalArgumentException
(nnext 5) => !java.lang.IllegalArgumentException
(fnext {}) => nil
(count (map inc [1 2])) => 2
(not-empty []) => nil
(reverse #{}) => ()
(vec ["a" "b"]) => ["a" "b"]
(sort '()) => ()
(distinct "") => ()
(dedupe :k) => !java.lang.IllegalArgumentException
(keys {:a 1}) => (:a)
(peek [1 2 3]) => 3
(pop #{1 2 3}) => !java.lang.ClassCastException
(frequencies [nil false]) => {nil 1, false 1}
(vector? '(1 2 3)) => false
(map? (range 5)) => false
(seq? nil) => false
(coll? {:a 1 :b 2 :c nil}) => true
(sequential? (list nil 1)) => true
(counted? [3 1 2 3 1]) => true
(seqable? "abc") => true
(ifn? 5) => false
(string? {}) => false
(keyword? (map inc [1 2])) => false
(nil? []) => false
(some? #{}) => true
(true? ["a" "b"]) => false
(char? '()) => false
(hash (range 5)) => -160844199
(str '()) => "()"
(print-str (range 5)) => "(0 1 2 3 4)"
(doall {:a 1 :b 2 :c nil}) => {:a 1, :b 2, :c nil}
(reversible? [3 1 2 3 1]) => true
(indexed? "abc") => false
(not nil) => true
(identity #{}) => #{}
(concat [nil false]) => (nil false)
(any? '(1 2 3)) => true
(hash-set (range 5)) => #{(0 1 2 3 4)}
(list nil) => (nil)
(map-entry? {:a 1 :b 2 :c nil}) => false
(range (list nil 1)) => !java.lang.ClassCastException
(clojure.walk/keywordize-keys "abc") => "abc"
(clojure.walk/stringify-keys 5) => 5
(min {}) => {}
(max (map inc [1 2])) => (2 3)
(apply + []) => 0
(map identity #{}) => ()
(filter odd? ["a" "b"]) => !java.lang.IllegalArgumentException
(remove nil? '()) => ()
(keep identity "") => ()
(reduce + :k) => !java.lang.IllegalArgumentException
(some identity {:a 1}) => [:a 1]
(every? identity [[1 2] [3 4]]) => true
(not-every? nil? [1 2 3]) => true
(into [] #{1 2 3}) => [1 3 2]
(into {} [nil false]) => !java.lang.IllegalArgumentException
(into () '(1 2 3)) => (3 2 1)
(take 2 (range 5)) => (0 1)
(take-while identity nil) => ()
(drop-while identity {:a 1 :b 2 :c nil}) => ()
(take-last 2 (list nil 1)) => (nil 1)
(drop-last 2 [3 1 2 3 1]) => (3 1 2)
(take-nth 2 "abc") => (\a \c)
(split-at 1 5) => !java.lang.IllegalArgumentException
(partition 2 {}) => ()
(partition-all 2 (map inc [1 2])) => ((2 3))
(partition-by odd? []) => ()
(group-by odd? #{}) => {}
(interpose :x ["a" "b"]) => ("a" :x "b")
(zipmap [:a :b] '()) => {}
(map-indexed vector "") => ()
(keep-indexed vector :k) => !java.lang.IllegalArgumentException
(filterv odd? {:a 1}) => !java.lang.IllegalArgumentException
(sort-by identity [[1 2] [3 4]]) => ([1 2] [3 4])
(cons 1 [1 2 3]) => (1 1 2 3)
(reductions + #{1 2 3}) => (1 4 6)
(nth [1] [nil false]) => !java.lang.ClassCastException
(run! identity '(1 2 3)) => nil
(clojure.string/join "," (range 5)) => "0,1,2,3,4"
(contains? [1] nil) => false
(nthrest [1 2 3] {:a 1 :b 2 :c nil}) => !java.lang.ClassCastException
(min-key (list nil 1)) => !clojure.lang.ArityException
(update-vals [3 1 2 3 1]) => !clojure.lang.ArityException
(max-key identity "abc") => "abc"
(select-keys {:a 1 :b 2} 5) => !java.lang.IllegalArgumentException
(tree-seq sequential? seq {}) => ({})
(repeat 2 (map inc [1 2])) => ((2 3) (2 3))
(clojure.set/union #{1} []) => #{1}
(get [] 1) => nil
(get '() [1 2]) => nil
(get {:a 1 :b 2 :c nil} nil) => nil
(get "" 0) => nil
(get [[1 2] [3 4]] 10) => nil
(get 5 :a) => nil
(nth [] "a") => !java.lang.ClassCastException
(nth '(1 2 3) -1) => !java.lang.IndexOutOfBoundsException
(nth #{} 1) => !java.lang.UnsupportedOperationException
(nth "" [1 2]) => !java.lang.ClassCastException
(nth (list nil 1) nil) => !java.lang.NullPointerException
(nth :k 0) => !java.lang.UnsupportedOperationException
(contains? [1 2 3] 10) => false
(contains? {} :a) => false
(contains? #{} "a") => false
(contains? (range 5) -1) => !java.lang.IllegalArgumentException
(contains? ["a" "b"] 1) => true
(contains? :k [1 2]) => !java.lang.IllegalArgumentException
(find [3 1 2 3 1] nil) => nil
(find {:a 1} 0) => nil
(find ["a" "b"] "a") => nil
(conj nil -1) => (-1)
(conj '() 1) => (1)
(conj {:a 1} [1 2]) => {:a 1, 1 2}
(conj "abc" nil) => !java.lang.ClassCastException
(conj [[1 2] [3 4]] 0) => [[1 2] [3 4] 0]
(conj [nil false] 10) => [nil false 10]
(disj [] :a) => !java.lang.ClassCastException
(disj '() "a") => !java.lang.ClassCastException
(disj {:a 1 :b 2 :c nil} -1) => !java.lang.ClassCastException
(disj "" 1) => !java.lang.ClassCastException
(disj [[1 2] [3 4]] [1 2]) => !java.lang.ClassCastException
(disj 5 nil) => !java.lang.ClassCastException
(dissoc [1 2 3] 0) => !java.lang.ClassCastException
(dissoc '(1 2 3) 10) => !java.lang.ClassCastException
(dissoc #{} :a) => !java.lang.ClassCastException
(dissoc "" "a") => !java.lang.ClassCastException
(dissoc (list nil 1) -1) => !java.lang.ClassCastException
(dissoc :k 1) => !java.lang.ClassCastException
(nthnext [1 2 3] [1 2]) => !java.lang.ClassCastException
(nthnext #{1 2 3} 0) => (1 3 2)
(nthnext (range 5) 10) => nil
(nthnext ["a" "b"] :a) => !java.lang.ClassCastException
(nthnext :k "a") => !java.lang.IllegalArgumentException
(take -1 [3 1 2 3 1]) => ()
(take 1 {:a 1}) => ([:a 1])
(take [1 2] #{1 2 3}) => !java.lang.ClassCastException
(take nil (map inc [1 2])) => !java.lang.NullPointerException
(take 0 [nil false]) => ()
(drop 10 nil) => ()
(drop :a '()) => !java.lang.ClassCastException
(drop "a" {:a 1}) => !java.lang.ClassCastException
(drop -1 "abc") => (\a \b \c)
(drop 1 [[1 2] [3 4]]) => ([3 4])
(drop [1 2] [nil false]) => !java.lang.ClassCastException
(cons 10 []) => (10)
(cons [1 2] '(1 2 3)) => ([1 2] 1 2 3)
(cons "a" #{}) => ("a")
(cons 0 (map inc [1 2])) => (0 2 3)
(cons :a [nil false]) => (:a nil false)
(= [] 1) => false
(= '() [1 2]) => false
(= {:a 1 :b 2 :c nil} nil) => false
(= "" 0) => false
(= [[1 2] [3 4]] 10) => false
(= 5 :a) => false
(assoc-in [] ["a"] 9) => !java.lang.IllegalArgumentException
(assoc-in '(1 2 3) [-1] 9) => !java.lang.ClassCastException
(assoc-in #{} [1] 9) => !java.lang.ClassCastException
(assoc-in "" [[1 2]] 9) => !java.lang.ClassCastException
(assoc-in (list nil 1) [nil] 9) => !java.lang.ClassCastException
(assoc-in :k [0] 9) => !java.lang.ClassCastException
(get-in [1 2 3] [10]) => nil
(get-in {} [:a]) => nil
(get-in #{} ["a"]) => nil
(get-in (range 5) [-1]) => nil
(get-in ["a" "b"] [1]) => "b"
(get-in :k [[1 2]]) => nil
(update nil -1 str) => {-1 ""}
(nth [] -1 :none) => :none
(get [1 2 3] -1 :none) => :none
(assoc [3 1 2 3 1] -1 :v) => !java.lang.IndexOutOfBoundsException
(update-in '() [3] (fnil inc 0)) => !java.lang.ClassCastException
('(1 2 3) 3) => !java.lang.ClassCastException
(update {} 3 str) => {3 ""}
(nth {:a 1} 3 :none) => !java.lang.UnsupportedOperationException
(get {:a 1 :b 2 :c nil} 3 :none) => :none
(assoc #{} 3 :v) => !java.lang.ClassCastException
(update-in #{1 2 3} [:a] (fnil inc 0)) => !java.lang.ClassCastException
("abc" :a) => !java.lang.ClassCastException
(update "" :a str) => !java.lang.ClassCastException
(nth (range 5) :a :none) => !java.lang.ClassCastException
(get (map inc [1 2]) :a :none) => :none
(assoc [[1 2] [3 4]] :a :v) => !java.lang.IllegalArgumentException
(update-in (list nil 1) [1] (fnil inc 0)) => !java.lang.ClassCastException
(["a" "b"] 1) => "b"
(update [nil false] 1 str) => [nil "false"]
(nth 5 1 :none) => !java.lang.UnsupportedOperationException
(get :k 1 :none) => :none
(frequencies "mississippi") => {\m 1, \i 4, \s 4, \p 2}
(clojure.string/upper-case " a b ") => " A B "
(clojure.string/trim "Hello World") => "Hello World"
(clojure.string/trim-newline "abc") => "abc"
(clojure.string/split-lines "") => [""]
(clojure.string/re-quote-replacement "a\nb\r\nc") => "a\nb\r\nc"
(clojure.string/starts-with? "\n" "") => true
(clojure.string/ends-with? "a,b,,c,," "a") => false
(clojure.string/includes? "abc" "b") => true
(clojure.string/includes? "AbC" "o W") => false
(clojure.string/index-of nil "") => !java.lang.NullPointerException
(clojure.string/last-index-of " a b " "a") => 1
(clojure.string/split "" #"," -1) => [""]
(clojure.string/replace-first "" #"\s+" "X") => ""
(subs "" 3 3) => !java.lang.StringIndexOutOfBoundsException
(name "") => ""
(clojure.string/split "abc" #"\s+" 2) => ["abc"]
(.charAt "abc" 0) => \a
(.equals "abc" "b") => false
(re-find #"\s" "Hello World") => " "
(clojure.string/replace "Hello World" "b" "X") => "Hello World"
(.toString "Hello World") => "Hello World"
(re-matches #"b" " a b ") => nil
(clojure.string/split " a b " #"(,)" 2) => [" a b "]
(.charAt " a b " 100) => !java.lang.StringIndexOutOfBoundsException
(re-seq #"," "a,b,,c,,") => ("," "," "," "," ",")
(clojure.string/split "a,b,,c,," #"" -1) => ["a" "," "b" "," "," "c" "," "," ""]
(subs "a,b,,c,," -1) => !java.lang.StringIndexOutOfBoundsException
(parse-double "a,b,,c,,") => nil
(re-find #"\s+" "äöü") => nil
(subs "äöü" 1 3) => "öü"
(.compareTo "äöü" "b") => 130
(re-matches #"\s" nil) => !java.lang.NullPointerException
(clojure.string/replace nil \b \X) => !java.lang.NullPointerException
(.contains nil "b") => !java.lang.NullPointerException
(clojure.string/replace "\n" #"b" "<$0>") => "\n"
(re-find #"(,)" "\n") => nil
(.toLowerCase "\n") => "\n"
(clojure.string/replace-first "AbC" #"," "X") => "AbC"
(re-matches #"" "AbC") => nil
(.substring "AbC" -1) => !java.lang.StringIndexOutOfBoundsException
(clojure.string/split "a\nb\r\nc" #",") => ["a\nb\r\nc"]
(re-seq #"\s+" "a\nb\r\nc") => ("\n" "\r\n")
(.charAt "a\nb\r\nc" 1) => \newline
(Integer/parseInt "1.5") => !java.lang.NumberFormatException
(Double/valueOf "") => !java.lang.NumberFormatException
(read-string "0x10") => 16
(Double/parseDouble "NaN") => ##NaN
(Float/parseFloat "5.") => 5.0
(format "%-5d|" 1) => "1    |"
(format "%+d" -42) => "-42"
(format "%o" 1234567) => "4553207"
(format "%8.3f" 1.5) => "   1.500"
(format "%g" -0.005) => "-0.00500000"
(format "%s" ##Inf) => "Infinity"
(format "%-10s|" 1e20) => "1.0E20    |"
(format "%S" ##NaN) => "NAN"
(format "%b" 0.125) => "true"
(format "%%" [1 "a"]) => "%"
(format "%.3s" 1.005) => "1.0"
(format "%08.2f" 0.0) => "00000.00"
(pr-str 0.125) => "0.125"
(str 9999999.0) => "9999999.0"
