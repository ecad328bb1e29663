-- What each type becomes; types.csv has the answers.
SELECT after.id, after.ti, after.tu, after.si, after.su, after.mi, after.mu, after.ii, after.iu, after.bi, after.bu FROM mix.numbers ORDER BY 1;
SELECT after.id, after.f, after.d, after.d1, after.d2, after.d3, after.b1, after.b64, after.bo FROM mix.numbers ORDER BY 1;
SELECT after.id, after.y, after.d, after.t0, after.t6, after.dt0, after.dt3, after.dt6, after.ts0, after.ts6 FROM mix.times ORDER BY 1;
SELECT after.id, after.c, character_length(after.c255), after.v, octet_length(after.v1k), after.bn, after.vb, after.tt, after.tx, after.mt, after.lt, after.tb, after.l1, after.sj, after.u16, after.e, after.s FROM mix.strings WHERE operation = 'insert' ORDER BY 1;
SELECT after.id, after.j, after.p, after.v, after.total, after.half, after.hidden FROM mix.others WHERE operation = 'insert' AND after.id <> 2 ORDER BY 1;
SELECT operation, key, after.a, after.b, before.b FROM mix.no_key ORDER BY "offset", "row";
SELECT arrow_typeof(after.d2), arrow_typeof(after.bu), arrow_typeof(after.f) FROM mix.numbers LIMIT 1;
SELECT arrow_typeof(after.dt6), arrow_typeof(after.ts6), arrow_typeof(after.d), arrow_typeof(after.t0) FROM mix.times LIMIT 1;
SELECT sum(after.bi), sum(after.bu), max(after.d2), min(after.d3), avg(after.f) IS NOT NULL FROM mix.numbers;
SELECT column FROM (SELECT after['sloupec ☕'] AS column FROM mix."čaj 茶");
SELECT json_value(after.j, '$.a[6]') AS deep, json_value(after.j, '$.big') AS big, hex(after.p) AS p FROM mix.others WHERE after.id = 1 AND operation = 'insert';
