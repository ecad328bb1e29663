//! Messages of a chat in ten languages and seven scripts. They are drawn from a seed of their own, [`super::SEED`] plus its number.

use std::io::{self, Write};

use super::words::word;
use crate::random::Random;

/// Words of each language, the usual ones first.
const LANGUAGES: [&str; 10] = [
    "the I you to it is a and that we can was for on have this tomorrow not with do at think maybe sorry thanks meeting \
     yesterday already please nobody weather train dinner really photo holiday kitchen remember",
    "ich das nicht du ist und die es wir der ein zu auf mit was noch schon morgen vielleicht danke gestern natürlich \
     für später müssen können überhaupt Wochenende Straßenbahn Frühstück größer Kühlschrank zurück gehört möchte",
    "que no de la el es y en un por con para lo una está muy bien mañana gracias también ayer quizás después vamos \
     reunión cuándo dónde corazón niños película difícil última ningún teléfono cumpleaños pregunté",
    "je tu est pas le la de un et il que pour on dans mais avec ça très bien demain merci peut-être déjà aujourd'hui \
     réunion après où même été café forêt leçon problème drôle téléphone répondre élève",
    "я не и в что ты на это с как мы но все он так уже завтра спасибо может быть конечно вчера работа потом хорошо \
     сколько друзья погода встреча ничего нового поезд опаздывает выходные помнишь праздник",
    "και το να είναι δεν με για μου η ο που θα σε τι από έχω αύριο ευχαριστώ ίσως χθες ναι όχι σήμερα πολύ καλά \
     δουλειά φίλοι ταξίδι θάλασσα καιρός συνάντηση τηλέφωνο γιορτή παιδιά μήνυμα",
    "في من على هذا أنا لا ما هل كان مع إلى أنت غدا شكرا ربما أمس نعم اليوم جدا العمل صديقي الاجتماع الطقس القطار \
     مشكلة صورة عطلة المطبخ البيت المدينة طعام وقت كتاب رسالة",
    "है मैं नहीं और यह का में हम तुम से को क्या कल धन्यवाद शायद आज बहुत अच्छा काम दोस्त बैठक मौसम गाड़ी समस्या \
     तस्वीर छुट्टी रसोई घर शहर खाना समय किताब संदेश पहले",
    "我 你 的 是 不 了 在 有 这 们 好 会 说 去 明天 谢谢 也许 昨天 今天 非常 工作 朋友 会议 天气 火车 问题 照片 假期 厨房 \
     时间 电话 晚饭 已经 知道 觉得 一起",
    "は の を に が です ます ない 私 これ と も で 明日 ありがとう たぶん 昨日 今日 とても 仕事 友達 会議 天気 電車 問題 写真 \
     休み 台所 時間 電話 夕食 もう 知って 思います 一緒に",
];

/// Messages in rooms, most in the language of the room; every twelfth is edited.
pub(super) fn chat(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "SET NAMES utf8mb4; CREATE DATABASE chat CHARACTER SET utf8mb4; CREATE TABLE chat.message(id BIGINT PRIMARY KEY, \
         room INT, author INT, sent DATETIME(3), reply_to BIGINT, body TEXT);"
    )?;
    let languages: Vec<Vec<&str>> =
        LANGUAGES.iter().map(|words| words.split_whitespace().collect()).collect();
    let mut milliseconds = 0u64;
    for id in 1..=count {
        milliseconds += random.below(3000) as u64;
        let room = random.below(200);
        let language =
            if random.below(6) == 0 { random.below(languages.len()) } else { room % languages.len() };
        let body = message(random, &languages[language], language >= 8);
        let reply = match random.below(3) {
            0 => u64::from(id).saturating_sub(1 + random.below(300) as u64).to_string(),
            _ => "NULL".to_owned(),
        };
        writeln!(
            out,
            "INSERT INTO chat.message VALUES ({id},{room},{},'2026-04-{:02} {:02}:{:02}:{:02}.{:03}',{reply},'{body}');",
            room * 7 + random.below(40),
            1 + milliseconds / 86_400_000 % 28,
            milliseconds / 3_600_000 % 24,
            milliseconds / 60_000 % 60,
            milliseconds / 1000 % 60,
            milliseconds % 1000
        )?;
        if random.below(12) == 0 {
            let more = message(random, &languages[language], language >= 8);
            writeln!(out, "UPDATE chat.message SET body=CONCAT(body,' ','{more}') WHERE id={id};")?;
        }
    }
    Ok(())
}

/// One to four sentences, perhaps with a number, a face or an address; `joined`: words of this script stand without spaces.
fn message(random: &mut Random, words: &[&str], joined: bool) -> String {
    let mut text = String::new();
    for sentence in 0..1 + random.below(4) {
        if sentence > 0 && !joined {
            text.push(' ');
        }
        for index in 0..3 + random.below(9) {
            if index > 0 && !joined {
                text.push(' ');
            }
            text.push_str(&word(random, words).replace('\'', "’"));
        }
        match random.below(8) {
            0 => text += &format!(" {}", random.below(100_000)),
            1 => text.push('😀'),
            2 => text += &format!(" https://example.org/{:x}", random.below(1 << 30)),
            3 => text.push('?'),
            _ => text.push_str(if joined { "。" } else { "." }),
        }
    }
    text
}
