/* Messages of libelf are not translated. */
#define dgettext(domain, text) (text)
#define gettext(text) (text)
#define dngettext(domain, one, many, n) ((n) == 1 ? (one) : (many))
