// mysql2 as a plain client: does what programs do when they connect, and says of each step how it went.
import { createRequire } from 'node:module';
import mysql from 'mysql2/promise';

const [port, user, password] = process.argv.slice(2);
const ssl = process.env.TLS ? { rejectUnauthorized: false } : undefined;
console.log('version', createRequire(import.meta.url)('mysql2/package.json').version);
let connection;
const step = async (name, what) => {
  try {
    await what();
    console.log('done', name);
  } catch (error) {
    console.log(`failed ${name}: ${error.message}`);
  }
};
const query = (sql) => async () => {
  const [rows] = await connection.query(sql);
  if (rows.length === 0) throw new Error('no row');
};
try {
  connection = await mysql.createConnection({ host: '127.0.0.1', port: Number(port), user, password, ssl });
} catch (error) {
  console.log(`failed connect: ${error.message}`);
  process.exit();
}
console.log('done connect');
await step('ping', () => connection.ping());
await step('SELECT 1', query('SELECT 1'));
await step('SHOW BINARY LOG STATUS', query('SHOW BINARY LOG STATUS'));
await step('SHOW BINARY LOGS', query('SHOW BINARY LOGS'));
await step('SHOW VARIABLES', query("SHOW VARIABLES LIKE 'binlog%'"));
await step('begin, commit, rollback', async () => {
  await connection.beginTransaction();
  await connection.commit();
  await connection.rollback();
});
await step('change user', () => connection.changeUser({ user, password }));
await step('use', () => connection.query('USE compat'));
await step('columns', query("SELECT column_name FROM information_schema.columns WHERE table_schema = 'compat'"));
await step('rows', query('SELECT COUNT(*) FROM compat.t'));
await step('prepared statement', () => connection.execute('SELECT COUNT(*) FROM compat.t WHERE id > ?', [0]));
await connection.end();
