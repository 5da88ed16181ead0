import { openTestServer } from '../databases/database';

/** This process holds the server, so that it ends with jest, however jest ends. No test may reach a real database. */
export default async function globalSetup(): Promise<void> {
  delete process.env.DATABASE_URL;
  await openTestServer();
}
