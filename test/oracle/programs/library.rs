// Much code out of few lines: generics and inlined calls of the standard library, for test/oracle/symbols-main.ts.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::{Debug, Display};
use std::io::{BufRead, BufReader, Write};
use std::sync::{mpsc, Arc, Mutex};

trait Shape: Debug {
    fn area(&self) -> f64;
}

#[derive(Debug, Clone, PartialEq)]
struct Square(f64);

#[derive(Debug, Clone, PartialEq)]
enum Round {
    Circle { radius: f64 },
    Ellipse(f64, f64),
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Round {
    fn area(&self) -> f64 {
        match self {
            Round::Circle { radius } => radius * radius * 3.14159,
            Round::Ellipse(a, b) => a * b * 3.14159,
        }
    }
}

fn group<K: Ord + Debug, T: Clone + Display>(all: &[T], key: impl Fn(&T) -> K) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for one in all {
        groups.entry(key(one)).or_default().push(one.clone());
    }
    groups
}

#[inline(always)]
fn fourth(x: u64) -> u64 {
    x.rotate_left(7) ^ x.wrapping_mul(31)
}
#[inline(always)]
fn third(x: u64) -> u64 {
    (0..x).map(fourth).fold(0, |a, b| a ^ b)
}
#[inline(always)]
fn second(x: u64) -> u64 {
    third(x) + third(x + 1)
}
#[inline(always)]
fn first(x: u64) -> u64 {
    second(x) * 2
}
#[inline(never)]
fn chain(x: u64) -> u64 {
    first(x)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let shapes: Vec<Box<dyn Shape>> = vec![
        Box::new(Square(2.0)),
        Box::new(Round::Circle { radius: 1.5 }),
        Box::new(Round::Ellipse(1.0, 2.0)),
    ];
    let total: f64 = shapes.iter().map(|shape| shape.area()).sum();
    let groups = group(&words, |word| word.len());
    let mut counts: HashMap<char, usize> = HashMap::new();
    for letter in words.iter().flat_map(|word| word.chars()).filter(|letter| letter.is_alphanumeric()) {
        *counts.entry(letter).or_insert(0) += 1;
    }
    let unique: HashSet<String> = words.iter().map(|word| word.to_uppercase()).collect();
    let mut sorted: Vec<_> = unique.into_iter().collect();
    sorted.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let shared = Arc::new(Mutex::new(VecDeque::new()));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4u64)
        .map(|i| {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            std::thread::spawn(move || {
                shared.lock().unwrap().push_back(chain(i * 1000));
                sender.send(format!("{i:>5} {:?}", std::thread::current().id())).unwrap();
            })
        })
        .collect();
    drop(sender);
    for text in receiver {
        println!("{text}");
    }
    for thread in threads {
        thread.join().expect("a thread failed");
    }
    for line in BufReader::new(std::fs::File::open("/proc/self/maps")?).lines().take(3) {
        writeln!(std::io::stdout(), "{}", line?.parse::<i64>().unwrap_or(-1))?;
    }
    println!("{total:.2} {groups:#?} {counts:?} {sorted:?} {shapes:?} {:?}", shared.lock().unwrap());
    Ok(())
}
