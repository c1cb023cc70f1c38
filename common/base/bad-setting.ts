/** A setting that a person got wrong; the message is a sentence. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting';
}
