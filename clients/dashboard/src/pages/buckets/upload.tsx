// Files are sent from the browser to the S3 address, with their progress.
import { useEffect, useRef, useState } from 'preact/hooks';
import { asApiError, useAction } from '../../api/use_query';
import { useOpened } from '../../parts/focus';
import { Problem } from '../../parts/form';
import { bytesText } from '../../parts/time';
import { useUnsaved } from '../../parts/unsaved';
import type { BucketData } from './bucket';
import { allowThisPage, allowsThisPage, uploadObject } from './presign';

interface UploadProps {
  bucket: BucketData;
  prefix: string;
  done(): Promise<void>;
}

interface Sent {
  name: string;
  size: number;
  /** 0 to 1. */
  part: number;
  problem: string | null;
}

export function Upload({ bucket, prefix, done }: UploadProps) {
  const [isAllowed, setAllowed] = useState<boolean | null>(null);
  const [isNew, setNew] = useState(false);
  const check = useAction(async () => setAllowed(await allowsThisPage(bucket.id)));
  const allow = useAction(async () => {
    await allowThisPage(bucket.id);
    setAllowed(true);
    setNew(true);
  });
  useEffect(() => void check.run(), [bucket.id]);
  if (isAllowed === null) return <Problem error={check.error} />;
  if (isAllowed) return <Chooser bucket={bucket} prefix={prefix} done={done} isNew={isNew} />;
  return (
    <div class="notice">
      <p>
        The files of a bucket are at another address than this page. Browsers upload and delete there once a CORS rule
        of the bucket allows <code>{location.origin}</code>. The other rules stay.
      </p>
      <button type="button" class="quiet small" aria-disabled={allow.isRunning} onClick={() => void allow.run()}>
        Allow uploads from this page
      </button>
      <Problem error={allow.error} />
    </div>
  );
}

interface ChooserProps extends UploadProps {
  /** The button that has allowed uploads is gone, and had the focus. */
  isNew: boolean;
}

function Chooser({ bucket, prefix, done, isNew }: ChooserProps) {
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const [folder, setFolder] = useState('');
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const change = (index: number, part: Partial<Sent>): void =>
    setSent((before) => before.map((one, at) => (at === index ? { ...one, ...part } : one)));
  const upload = useAction(async (files: readonly File[]) => {
    setSent(files.map(({ name, size }) => ({ name, size, part: 0, problem: null })));
    const place = prefix + (folder && `${folder.replace(/^\/+|\/+$/g, '')}/`);
    // One after the other: each has the whole line, and its progress is that of one file.
    for (const [index, file] of files.entries()) {
      try {
        await uploadObject(bucket.id, place + file.name, file, (part) => change(index, { part }), stop.current.signal);
        change(index, { part: 1 });
      } catch (error) {
        change(index, { problem: asApiError(error).message });
      }
    }
    setFolder('');
    await done();
  });
  useUnsaved(() => upload.isRunning);
  const fields = useOpened<HTMLDivElement>(isNew);
  return (
    <>
      <div class="columns" ref={fields}>
        <label>
          Upload files
          <input
            type="file"
            multiple
            aria-disabled={upload.isRunning}
            onClick={(event) => upload.isRunning && event.preventDefault()}
            onChange={(event) => {
              const { files } = event.currentTarget;
              if (files?.length) void upload.run([...files]);
            }}
          />
        </label>
        <label>
          Into a new folder
          <input
            value={folder}
            placeholder="none"
            readOnly={upload.isRunning}
            onInput={(event) => setFolder(event.currentTarget.value)}
          />
        </label>
      </div>
      {sent.length > 0 && <Progress sent={sent} />}
    </>
  );
}

function Progress({ sent }: { sent: readonly Sent[] }) {
  return (
    <ul class="rows" aria-label="Uploads">
      {sent.map((one) => (
        <li key={one.name} class="row">
          <div>
            {one.name} <span class="faint">{bytesText(one.size)}</span>
          </div>
          <progress max={1} value={one.part} aria-label={`Upload of ${one.name}`} />
          <span role="status">{one.problem ?? (one.part < 1 ? `${Math.floor(one.part * 100)} %` : 'uploaded')}</span>
        </li>
      ))}
    </ul>
  );
}
