import { Copyable } from './copy';

/** A secret that the API shows once, until the person says that it is kept. */
export function SecretOnce({ secret, label, onClose }: { secret: string; label: string; onClose(): void }) {
  return (
    <div class="notice good" role="status">
      <p>
        This is the only time that the {label} is shown. Copy it to where you keep secrets: the platform cannot show it
        again.
      </p>
      <Copyable text={secret} label={label} />
      <p class="actions">
        <button type="button" class="quiet small" onClick={onClose}>
          I have saved it
        </button>
      </p>
    </div>
  );
}
