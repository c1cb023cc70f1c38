// deploy-check FILE…: reads Kubernetes manifests as an API server with strict field validation does, lets its own code say whether
// it would take them, and judges their pods by the Pod Security Standards. Collector and ClickHouse must be "restricted"; of the agent it must be exactly known why it is not
// even "baseline".
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// What the agent asks for beyond "baseline", and nothing else.
var agentMayFail = map[string]bool{
	"host namespaces":             true,
	"non-default capabilities":    true,
	"hostPath volumes":            true, // cache.hostPath
	"forbidden AppArmor profile":  true,
	"forbidden AppArmor profiles": true,
	"seLinuxOptions":              true,
	"seccompProfile":              true,
}

func main() {
	failed := false
	for _, path := range os.Args[1:] {
		objects, err := decodeFile(path)
		if err != nil {
			fmt.Printf("%s: %v\n", path, err)
			failed = true
			continue
		}
		notes, problems := judge(objects)
		for _, problem := range problems {
			fmt.Printf("%s: %s\n", path, problem)
			failed = true
		}
		fmt.Printf("%s: %d objects; %s\n", path, len(objects), strings.Join(notes, "; "))
	}
	if failed || len(os.Args) < 2 {
		os.Exit(1)
	}
}

func decodeFile(path string) ([]runtime.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	documents := yamlutil.NewYAMLReader(bufio.NewReader(file))
	seen := map[string]bool{}
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if isEmpty(document) {
			continue
		}
		object, kind, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if err := admit(document, kind.Kind); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		name := kind.Kind + "/" + object.(metav1.Object).GetName()
		if seen[name] {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		objects = append(objects, object)
	}
}

func isEmpty(document []byte) bool {
	for _, line := range strings.Split(string(document), "\n") {
		if text := strings.TrimSpace(line); text != "" && text != "---" && !strings.HasPrefix(text, "#") {
			return false
		}
	}
	return true
}

func judge(objects []runtime.Object) (notes, problems []string) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, object := range objects {
		name, template := podOf(object)
		if template == nil {
			continue
		}
		problems = append(problems, weaknesses(name, &template.Spec)...)
		reasons := failures(evaluator, api.LevelRestricted, template)
		if !strings.HasSuffix(name, "-agent") {
			if len(reasons) > 0 {
				problems = append(problems, fmt.Sprintf("%s is not restricted: %v", name, reasons))
			}
			notes = append(notes, name+" is restricted")
			continue
		}
		beyond := failures(evaluator, api.LevelBaseline, template)
		for _, reason := range beyond {
			if !agentMayFail[reason] {
				problems = append(problems, fmt.Sprintf("%s: %q is not among what the agent is known to need", name, reason))
			}
		}
		notes = append(notes, fmt.Sprintf("%s is beyond baseline by %s", name, strings.Join(beyond, ", ")))
	}
	return notes, problems
}

func podOf(object runtime.Object) (string, *corev1.PodTemplateSpec) {
	switch workload := object.(type) {
	case *appsv1.DaemonSet:
		return workload.Name, &workload.Spec.Template
	case *appsv1.StatefulSet:
		return workload.Name, &workload.Spec.Template
	case *appsv1.Deployment:
		return workload.Name, &workload.Spec.Template
	}
	return "", nil
}

func failures(evaluator policy.Evaluator, level api.Level, template *corev1.PodTemplateSpec) []string {
	version := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	var reasons []string
	for _, result := range evaluator.EvaluatePod(version, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			reasons = append(reasons, result.ForbiddenReason)
		}
	}
	sort.Strings(reasons)
	return reasons
}

// What the standards do not ask for.
func weaknesses(name string, spec *corev1.PodSpec) (problems []string) {
	add := func(format string, values ...any) {
		problems = append(problems, name+": "+fmt.Sprintf(format, values...))
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		add("a token of the API server is mounted")
	}
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		add("variables of services may be taken for settings")
	}
	if spec.HostNetwork || spec.HostIPC {
		add("shares the host's network or IPC")
	}
	volumes := map[string]bool{}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = volume.Secret != nil || volume.ConfigMap != nil
		if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit == nil {
			add("volume %s has no limit", volume.Name)
		}
	}
	for _, container := range spec.Containers {
		if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Memory().IsZero() {
			add("%s has no limit or request of memory", container.Name)
		}
		if context := container.SecurityContext; context.Privileged == nil || *context.Privileged {
			add("%s may be privileged", container.Name)
		}
		for _, mount := range container.VolumeMounts {
			if volumes[mount.Name] && !mount.ReadOnly {
				add("%s may write to %s", container.Name, mount.MountPath)
			}
		}
	}
	return problems
}
