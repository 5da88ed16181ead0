import type { ComponentChildren } from 'preact';
import { Copyable } from './copy';

interface SecretOnceProps {
  secret: string;
  label: string;
  /** What to do with it; otherwise it is kept. */
  children?: ComponentChildren;
  onClose(): void;
}

/** A secret that the API shows once, until the person says that it is kept. */
export function SecretOnce({ secret, label, children, onClose }: SecretOnceProps) {
  return (
    <div class="notice good" role="status">
      <p>
        This is the only time that the {label} is shown.{' '}
        {children ?? 'Copy it to where you keep secrets: the platform cannot show it again.'}
      </p>
      <Copyable text={secret} label={label} />
      <p class="actions">
        <button type="button" class="quiet small" onClick={onClose}>
          {children ? 'Done' : 'I have saved it'}
        </button>
      </p>
    </div>
  );
}
