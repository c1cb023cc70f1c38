/** ClickHouse's engine as a process of its own. Prints its address. */
import { startChdbServer } from '../../clickhouse/chdb-server.ts';

const [folder, data] = process.argv.slice(2);
const server = await startChdbServer(folder!, data!);
server.run('CREATE DATABASE IF NOT EXISTS fleet');
console.log(server.url);
