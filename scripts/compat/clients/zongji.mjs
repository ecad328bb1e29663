// zongji, of the package that PACKAGE names: prints the rows of compat.t and where to go on; see
// crates/interfaces/cli/tests/compat/clients.
const { default: ZongJi } = await import(process.env.PACKAGE);
const [port, user, password, by, place] = process.argv.slice(2);
const ssl = process.env.TLS ? { rejectUnauthorized: false } : undefined;
const zongji = new ZongJi({ host: '127.0.0.1', port: Number(port), user, password, ssl, dateStrings: true });
const text = (value) => {
  if (value === null || value === undefined) return 'NULL';
  return value instanceof Date ? value.toISOString().slice(0, 19).replace('T', ' ') : String(value);
};
let file = '';
zongji.on('binlog', (event) => {
  const type = event.getTypeName();
  if (type === 'Rotate') {
    file = event.binlogName;
  } else if (type === 'WriteRows' && event.tableMap[event.tableId].tableName === 't') {
    for (const row of event.rows) {
      const [id, word, price, at] = Object.values(row);
      // Both give decimals as numbers or without their zeros.
      console.log('row', [id, word, Number(price).toFixed(2), at].map(text).join('\t'));
    }
  } else if (type === 'Xid') {
    console.log('at', by === 'gtid' ? zongji.gtidSet : `${file}:${event.nextPosition}`);
  }
});
zongji.on('error', (error) => {
  console.error(String(error));
  process.exit(1);
});
const begin = by === 'gtid'
  ? { gtidSet: place }
  : { filename: place.slice(0, place.lastIndexOf(':')), position: Number(place.slice(place.lastIndexOf(':') + 1)) };
if (by !== 'gtid') file = begin.filename;
zongji.start({ ...begin, serverId: process.pid, includeEvents: ['rotate', 'tablemap', 'writerows', 'xid', 'gtid'] });
