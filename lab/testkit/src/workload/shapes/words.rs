//! Words and sentences of everyday text.

use crate::random::Random;

/// A word of everyday text, the first ones more often.
pub(super) fn word<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[skewed(random, words.len())]
}

/// A number below `bound`, low ones more often.
pub(super) fn skewed(random: &mut Random, bound: usize) -> usize {
    let below = 1 + random.below(bound);
    random.below(below)
}

pub(super) const WORDS: [&str; 64] = [
    "the",
    "order",
    "of",
    "and",
    "to",
    "was",
    "in",
    "for",
    "with",
    "customer",
    "that",
    "on",
    "is",
    "at",
    "from",
    "by",
    "delivery",
    "not",
    "an",
    "this",
    "be",
    "has",
    "been",
    "payment",
    "it",
    "or",
    "as",
    "we",
    "item",
    "please",
    "warehouse",
    "before",
    "after",
    "number",
    "address",
    "return",
    "street",
    "invoice",
    "week",
    "damaged",
    "urgent",
    "replaced",
    "carrier",
    "morning",
    "evening",
    "second",
    "account",
    "supplier",
    "checked",
    "missing",
    "colour",
    "small",
    "large",
    "green",
    "black",
    "steel",
    "wooden",
    "quality",
    "refund",
    "pending",
    "question",
    "answered",
    "manager",
    "contract",
];

pub(super) const MULTILINGUAL: [&str; 24] = [
    "Größe",
    "schnell",
    "Straße",
    "livré",
    "très",
    "déjà",
    "facture",
    "envío",
    "mañana",
    "cómodo",
    "注文",
    "配送",
    "品質",
    "東京",
    "доставка",
    "быстро",
    "заказ",
    "качество",
    "تسليم",
    "جودة",
    "εξαιρετικό",
    "szybko",
    "çok",
    "güzel",
];

pub(super) fn sentence(random: &mut Random, words: usize) -> String {
    let mut text = String::new();
    for index in 0..words {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(word(random, &WORDS));
    }
    text
}
