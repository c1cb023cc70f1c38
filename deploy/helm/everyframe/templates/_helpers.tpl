{{- define "everyframe.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* call with (list . "agent") */ -}}
{{- define "everyframe.selector" -}}
app.kubernetes.io/name: everyframe
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "everyframe.labels" -}}
{{ include "everyframe.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{- define "everyframe.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "everyframe.tokenSecret" -}}
{{ default (printf "%s-token" (include "everyframe.name" .)) .Values.token.existingSecret }}
{{- end }}

{{- define "everyframe.hasClickhouse" -}}
{{- if or .Values.clickhouse.enabled .Values.clickhouse.existingSecret }}yes{{ end }}
{{- end }}

{{- define "everyframe.clickhouseSecret" -}}
{{ default (printf "%s-clickhouse" (include "everyframe.name" .)) .Values.clickhouse.passwordSecret }}
{{- end }}
