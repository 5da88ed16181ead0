// The mail server to which the installation gives its mail. It is away until the installation is restored.
import { SMTPServer } from 'smtp-server';

const WITHIN_MS = 600_000;

/** Listens for the first time, and resolves with the subjects that were wanted. */
export async function mailReceived(settings: Record<string, string>): Promise<string> {
  const port = Number(new URL(String(settings.SMTP_URL)).port);
  return new Promise((resolve, reject) => {
    const server = new SMTPServer({
      ...{ disabledCommands: ['AUTH', 'STARTTLS'], logger: false },
      onData(stream, _, done) {
        let text = '';
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
        stream.on('end', () => {
          done();
          const [, subject = ''] = /^Subject: (.*)$/im.exec(text) ?? [];
          if (subject !== 'Queued before the backup') return;
          clearTimeout(late);
          server.close(() => resolve(subject));
        });
      },
    });
    const late = setTimeout(() => server.close(() => reject(new Error('no mail has come'))), WITHIN_MS);
    server.on('error', reject);
    server.listen(port, '127.0.0.1');
  });
}

