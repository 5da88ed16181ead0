// A key is rotated in three steps, and at no moment without a key that works: a new one, its place, the end of the old.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useAction, type Action } from '../../api/use_query';
import { Copyable } from '../../parts/copy';
import { Dialog } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { Ago } from '../../parts/time';
import type { Key } from './key_table';

interface RotationProps {
  one: Key;
  /** Makes the new key. @returns its token */
  renew(): Promise<string>;
  /** Revokes the old one. */
  revoke(): Promise<unknown>;
  /** The dialog is left with both keys. */
  keep(token: string): void;
  onClose(): void;
}

export function Rotation({ one, renew, revoke, keep, onClose }: RotationProps) {
  const [token, setToken] = useState('');
  const [isPlaced, setPlaced] = useState(false);
  const isRevoked = useRef(false);
  const making = useAction(async () => setToken(await renew()));
  const ending = useAction(async () => {
    isRevoked.current = true;
    await revoke().catch((error: unknown) => {
      isRevoked.current = false;
      throw error;
    });
    onClose();
  });
  const leave = (): void => {
    if (token && !isRevoked.current) keep(token);
    onClose();
  };
  return (
    <Dialog title={`Rotate ${one.name}`} onClose={leave}>
      <ol class="rotation">
        <Making one={one} action={making} token={token} />
        <Step title="Put it where the old one is used." isNext={Boolean(token) && !isPlaced}>
          <p>The platform cannot show it again.</p>
          {token && <Copyable text={token} label={`new key ${one.name}`} />}
        </Step>
        <Ending one={one} action={ending} isReady={Boolean(token)} isPlaced={isPlaced} place={setPlaced} />
      </ol>
      <footer class="actions">
        <button type="button" class="quiet" onClick={leave}>
          {token ? 'Revoke it later' : 'Cancel'}
        </button>
        <button
          type="button"
          class="danger"
          disabled={!isPlaced}
          aria-disabled={ending.isRunning}
          onClick={() => void ending.run()}
        >
          Revoke the old key
        </button>
      </footer>
    </Dialog>
  );
}

function Making({ one, action, token }: { one: Key; action: Action<void>; token: string }) {
  return (
    <Step title="Rotate" isNext={!token}>
      <p>It has the same name and rights as {one.name}, which goes on working.</p>
      {!token && (
        <button type="button" aria-busy={action.isRunning} onClick={() => void action.run()}>
          Make the new key
        </button>
      )}
      <Problem error={action.error} />
    </Step>
  );
}

interface EndingProps {
  one: Key;
  action: Action<void>;
  isReady: boolean;
  isPlaced: boolean;
  place(isPlaced: boolean): void;
}

function Ending({ one, action, isReady, isPlaced, place }: EndingProps) {
  const { prefix, last_used_at } = one;
  return (
    <Step title="Revoke the old key." isNext={isPlaced}>
      <p>
        <code>{prefix}…</code> {last_used_at ? 'was last used ' : 'has not been used.'}
        {last_used_at && <Ago time={last_used_at} />}
      </p>
      <label class="check">
        <input
          type="checkbox"
          checked={isPlaced}
          disabled={!isReady}
          onChange={(event) => place(event.currentTarget.checked)}
        />
        All programs have the new key
      </label>
      <Problem error={action.error} />
    </Step>
  );
}

function Step({ title, isNext, children }: { title: string; isNext: boolean; children: ComponentChildren }) {
  return (
    <li aria-current={isNext ? 'step' : undefined}>
      <strong>{title}</strong>
      {children}
    </li>
  );
}
